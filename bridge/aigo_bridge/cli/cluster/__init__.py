"""`run --on ray`."""
