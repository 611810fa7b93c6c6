"""What plan and solve costs: a plan of 16 tasks, a solver process for each, all at once, then the answer and its check.

*Ours* is ``codex-multi-role --flow plan-solve --input concurrency=16`` with the shipped roles: tools offered, states
told, every turn recorded, in a project that has had a run before. The raw driver is a script that takes the same 19
turns with our flags, all 19 processes started at the beginning, and keeps, checks and recovers nothing. The model
answers each turn after 200 ms, so four turns one after another, 0.8 s, are nobody's overhead.

    python benchmarks/plan_solve.py [--runs 7]

Prints medians of whole-process wall time, taken in turn, and the ratios with and without our start-up (the time until
Python has imported what the command needs). Exits with 1 when ours, start-up apart, takes more than 1.30 of the raw
driver's time.
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from raw import IMPORTS, RawRole, at_once, medians, provider, read_options, timed

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.locator import find_codex

SOLVERS = 16
MOST = 1.30
PROMPT = "Say what comes next. " * 40
AT_ONCE = {"deltas": 1, "delay_seconds": 0.2}
TODOS = [{"id": f"T{number}", "content": f"Find figure {number}."} for number in range(SOLVERS)]
PLAYS = {
    "planner_agent": {"todos": TODOS},
    "solver": {"result": "42", "summary": "found it"},
    "aggregator": {"answer": "All are 42.", "summary": "put together"},
    "verifier": {"verified": True, "issues": []},
}


def raw(base_url: str) -> None:
    """The same turns without us, in this process."""
    argv = app_server_argv(find_codex(None, os.environ), provider(base_url))
    solvers = [RawRole(argv, Path.cwd(), "solver", f"solver.{number}") for number in range(SOLVERS)]
    planner, *others = (RawRole(argv, Path.cwd(), role) for role in PLAYS if role != "solver")
    at_once(RawRole.open, [planner, *solvers, *others])
    planner.turn(1, PROMPT)
    at_once(lambda role: role.turn(1, PROMPT), solvers)
    for role in others:
        role.turn(1, PROMPT)
    at_once(RawRole.close, [planner, *solvers, *others])


def ours(base_url: str, project: Path) -> float:
    """The wall seconds of our command."""
    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    goal = ["--goal", "find the figures", "--flow", "plan-solve", "--input", f"concurrency={SOLVERS}"]
    return timed([sys.executable, "-m", "codex_multi_role", *goal, "--no-run-tests", "--quiet", *flags], 0, project)


def main() -> None:
    options = read_options(__doc__, 7, "URL")
    if options.raw:
        raw(*options.raw)
        return
    from codex_multi_role.playbook import Playbook, PlaybookServer  # here: the raw driver has no use for it

    plays = {role: [{"json": answer, **AT_ONCE}] for role, answer in PLAYS.items()}
    playbook = Playbook.model_validate({"name": "plan-solve", "roles": plays, "repeat_last": True})
    with PlaybookServer(playbook) as server, tempfile.TemporaryDirectory() as project:
        figures = medians(
            {
                "raw": partial(timed, [sys.executable, __file__, "--raw", server.base_url], 0),
                "ours": partial(ours, server.base_url, Path(project)),
                "start-up": partial(timed, [sys.executable, "-c", IMPORTS], 0),
                "raw start-up": partial(timed, [sys.executable, __file__, "--help"], 0),
            },
            options.runs,
        )
    sys.exit(0 if report(figures) else 1)


def report(figures: dict[str, float]) -> bool:
    """Print the table; returns whether the aim is met."""
    for name, seconds in figures.items():
        print(f"{name:<14}{seconds:7.3f} s")
    apart = (figures["ours"] - (figures["start-up"] - figures["raw start-up"])) / figures["raw"]
    print(f"ours / raw                          {figures['ours'] / figures['raw']:.2f}")
    verdict = "met" if apart <= MOST else "missed"
    print(f"(ours - its extra start-up) / raw   {apart:.2f} (at most {MOST:.2f}: {verdict})")
    return apart <= MOST


if __name__ == "__main__":
    main()
