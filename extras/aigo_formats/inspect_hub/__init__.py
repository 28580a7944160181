"""Conversion of Inspect's `eval.yaml` on the Hugging Face Hub to AI GO tasks, without importing or running
Inspect.
"""

HUB = "inspect-hub"
"""Name of the format on the command line."""
