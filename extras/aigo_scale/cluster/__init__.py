"""Runs on a cluster: workers run shards, and their results are merged as one run."""
