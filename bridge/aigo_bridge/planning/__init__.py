"""Conversion of a task as written to a plan: config is bound, rows are selected, names are checked."""
