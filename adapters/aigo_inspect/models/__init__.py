"""Adapters between the models of Inspect and the core's `Model` protocol, in both directions."""
