"""Inspect's `eval.yaml` on the Hugging Face Hub as AI GO tasks: nothing of Inspect is imported, nothing is
run.
"""
