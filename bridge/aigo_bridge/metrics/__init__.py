"""Metrics: numbers computed from the scores that one scorer gave to all samples."""
