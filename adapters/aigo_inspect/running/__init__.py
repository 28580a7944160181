"""Runs of AI GO plans with Inspect: the plan as an Inspect task, the run, and the evidence in its log."""
