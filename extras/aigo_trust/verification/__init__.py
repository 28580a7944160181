"""Verification of results: whether a file was modified, and whether its metrics follow from its content."""
