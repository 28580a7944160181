"""Removal of secrets: known values, and keys in known formats."""
