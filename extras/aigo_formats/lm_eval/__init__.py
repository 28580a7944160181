"""Import of results and samples of lm-evaluation-harness (EleutherAI), release 0.4 and later.

The format was derived from files that releases 0.4.5 to 0.4.13 wrote. The package itself is not used.
docs/reference/file-formats.md describes the mapping of each field.
"""
