"""`TaskPlan`, a task exactly as it will run, and `LoggedPlan`, the data that a log records about a plan."""
