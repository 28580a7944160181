"""Solvers: create the trace of a sample's conversation through the Model protocol."""
