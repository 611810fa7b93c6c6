"""Plan and solve: a goal split into tasks with dependencies, each of which is solved on its own."""

MOVED = f"from {__name__}.plan_solver import PlanSolved, PlanSolver, create_plan_solver"
