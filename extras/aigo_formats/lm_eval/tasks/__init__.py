"""Tasks of lm-evaluation-harness as AI GO tasks: nothing of the harness is imported, and no function of a
task is run.
"""
