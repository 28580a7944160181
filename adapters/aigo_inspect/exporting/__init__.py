"""The two forms of a task exported to Inspect: a file that calls aigo-bridge, and plain Inspect code."""
