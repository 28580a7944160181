"""Sandbox for untrusted code: Linux namespaces, limits and filters around a command."""
