"""Cassettes: files with every call of a model that a run has made, from which other runs are answered."""
