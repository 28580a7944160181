"""lighteval's own tasks, run as they are."""
