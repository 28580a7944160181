"""From the bytes of a log to raw samples; Inspect is not imported."""
