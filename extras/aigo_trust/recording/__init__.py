"""Recordings: all model calls of a run in one file, and runs that are answered from such a file."""
