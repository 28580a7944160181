"""The two forms of a task exported to lighteval: a file that calls aigo-bridge, and plain code."""
