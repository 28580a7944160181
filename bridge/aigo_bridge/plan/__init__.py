"""`TaskPlan`, a task exactly as it will run, and `LoggedPlan`, what a log says of one."""
