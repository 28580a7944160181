"""Runs of existing Inspect tasks without changes."""
