"""Conversion of lm-evaluation-harness tasks to AI GO tasks. It does not import the harness or run a task's
functions.
"""
