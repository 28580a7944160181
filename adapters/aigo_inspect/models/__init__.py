"""Inspect's models behind the core's Model protocol, and the core's models behind Inspect's."""
