"""Metrics: numbers over the scores that one scorer gave to all samples."""
