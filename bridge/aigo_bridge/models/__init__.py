"""Models as the sample program calls them, and models that need no engine."""
