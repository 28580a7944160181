"""Export of tasks to lighteval in two forms: a file that calls aigo-bridge, and plain code."""
