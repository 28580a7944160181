"""Existing Inspect tasks, run as they are."""
