"""Reading of Inspect logs, from bytes to raw samples, without importing Inspect."""
