"""Engines: the required interface, optional capabilities, and the registry."""
