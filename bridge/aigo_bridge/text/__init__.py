"""Texts as they are spelled in JSON, escaped, and shown on a screen."""
