"""Evaluations in shards: separate processes whose results are merged into the result of one run."""
