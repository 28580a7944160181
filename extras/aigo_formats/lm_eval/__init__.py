"""lm-evaluation-harness (EleutherAI), releases from 0.4: results and samples → evidence.

What the files look like was learnt from files that releases 0.4.5 to 0.4.13 wrote; the package itself is not
used. docs/reference/file-formats.md lists how each field is mapped.
"""
