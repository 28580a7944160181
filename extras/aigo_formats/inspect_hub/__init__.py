"""Inspect's `eval.yaml` on the Hugging Face Hub as AI GO tasks: nothing of Inspect is imported, nothing is
run.
"""

HUB = "inspect-hub"
"""Name of the format on the command line."""
