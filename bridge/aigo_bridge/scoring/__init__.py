"""Scorers: compute named scores from a sample and the solver's output."""
