"""The verbs that prove where a result comes from, one per module."""
