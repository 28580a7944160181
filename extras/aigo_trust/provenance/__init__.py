"""Where a result comes from: digests of it and of what made it, beside it and signed."""
