"""Pieces of a run carried out by the workers of a cluster, and merged as one run."""
