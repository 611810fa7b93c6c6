"""The job of `compare.py`, the same for every peer; each peer's script runs in an environment without our package.

`turns`: four agents take three turns each, one after the other. Each keeps its own conversation and gets the answer of
the one before. `fan`: sixteen agents take one turn each, all at once. A job returns the answers it got.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

ROLES = ("planner", "architect", "implementer", "integrator")
CYCLES = 3
ITEMS = 16
MODEL = "bench"
KEY = "unused"

Answers = Sequence[str]
Work = Callable[[str], Answers]


def instructions(role: str) -> str:
    return f"You are the {role}. " + "Say what comes next. " * 40


def prompt(answers: Answers) -> str:
    """The prompt of the next turn."""
    return f"The goal: measure the floor. The answer before yours: {answers[-1] if answers else 'none'}"


def run_job(turns: Work, fan: Work) -> None:
    """Do the job that the command line names, with the model at its base URL. Exits unless every answer came."""
    name, base_url = sys.argv[1:3]
    work, expected = {"turns": (turns, CYCLES * len(ROLES)), "fan": (fan, ITEMS)}[name]
    answers = work(base_url)
    if len(answers) != expected or not all("one more step" in answer for answer in answers):
        sys.exit(f"{len(answers)} answers instead of {expected}, or wrong ones: {list(answers)[:2]}")
