"""Metrics of results with intervals, and comparisons of two or more results."""
