"""Runs of lighteval's built-in tasks."""
