"""From a task as written to a task as it will run: config bound, rows selected, names checked."""
