"""Plan and solve: a goal split into tasks with dependencies, each of which is solved on its own."""
