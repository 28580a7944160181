"""Scorers put to the test: stored outputs are changed, and who changes their mind is told."""
