"""Provenance of results: digests of a result and its inputs, in a separate file that can be signed."""
