"""Runs of plans in lighteval's pipeline, and their results as evidence."""
