"""Engines: what one has to do, what it may do besides, and how one is found."""
