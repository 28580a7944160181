"""Formats of others, and AI GO's: each read (or written) here without an engine."""
