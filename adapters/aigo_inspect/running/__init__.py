"""A plan as an Inspect task, its run, and the run's log read back as evidence."""
