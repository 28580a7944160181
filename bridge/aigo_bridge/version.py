"""This release, apart from the public names: every room may know it."""

__version__ = "0.1.0"
