"""A plan as lighteval's documents and task."""
