"""Commands of this package, one module each, imported on use."""
