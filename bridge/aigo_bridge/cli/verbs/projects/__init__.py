"""Verbs that begin a project, and add to it."""
