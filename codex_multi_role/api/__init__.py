"""The public API: run a team, look at what runs left, and write a team in Python.

`run` takes a goal and options as keywords, and returns a `ReportedRun`; `load_run` and `runs` give earlier runs.
"""

from codex_multi_role.api.python_team import Flow, Role, Route, Step, Team
from codex_multi_role.api.recorded_runs import ReportedRun, Run, Turn, load_run, runs
from codex_multi_role.api.run_goal import fork, rerun, restart, resume, run
from codex_multi_role.api.running import answer, cancel_task
from codex_multi_role.run_options import RunOptions, RunReport

__all__ = [
    "Flow",
    "ReportedRun",
    "Role",
    "Route",
    "Run",
    "RunOptions",
    "RunReport",
    "Step",
    "Team",
    "Turn",
    "answer",
    "cancel_task",
    "fork",
    "load_run",
    "rerun",
    "restart",
    "resume",
    "run",
    "runs",
]
