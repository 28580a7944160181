"""A plan in lighteval's pipeline, its run, and the run's results read back as evidence."""
