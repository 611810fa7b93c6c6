"""What people see of a run, wherever they look: progress from its events, what its folder holds, in words."""
