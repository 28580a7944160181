"""Evaluations in shards: each a process of its own, merged into what one run would have written."""
