"""Models as the sample program calls them, and those that need no engine."""
