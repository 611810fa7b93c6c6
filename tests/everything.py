"""Run what a release needs: the gate with the whole suite on every Python, and everything that the gate leaves out.

\b
    python -m tests.everything                                one after the other; takes hours
    python -m tests.everything --weekly                       long tests, more examples, a share of endurance
    python -m tests.everything --only promises --only core
    python -m tests.everything --list                         the names and their commands

The exit code is 1 if any of them failed.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

TOP = Path(__file__).parents[1]
SEARCHED = "tests/host/test_redaction.py tests/replies/test_exactness.py"
CHECKS = {
    "gate": "bash .ci/run --whole",
    "long": "python -m pytest -m long",
    "core": "python -m tests.core --minimal -n 4",
    "search": f"python -m pytest -n 4 --hypothesis-profile=search {SEARCHED}",
    "promises": "python -m tests.promises",
    "kill": "python -m tests.endurance kill --double 200",
    "full-disk": "python -m tests.endurance full-disk",
    "frozen": "python -m tests.endurance frozen",
    "line": "python -m tests.endurance line",
}
"""The command of each check, by name."""
PROPERTIES = "python -m pytest -m pure -n 2 --hypothesis-profile=weekly"
WEEKLY_POINTS = {"kill": 24, "full-disk": 12, "frozen": 24, "line": 24}
"""How many points of each of its scenarios a fault strikes: all takes less than two hours on two cores."""


def weekly(seed: int) -> dict[str, str]:
    """The checks of a week: no release is due, so each promise is tried in more ways than the gate has time for."""
    struck = {
        fault: f"python -m tests.endurance {fault} --points {points} --seed {seed}"
        for fault, points in WEEKLY_POINTS.items()
    }
    return {"long": CHECKS["long"], "properties": PROPERTIES, **struck}


def execute(command: Sequence[str]) -> int:
    """Run ``command`` in the checkout, with this process's streams; return its exit code."""
    python = {"python": sys.executable}
    return subprocess.run([python.get(word, word) for word in command], cwd=TOP, check=False).returncode


def run_checks(checks: Mapping[str, str], execute: Callable[[Sequence[str]], int] = execute) -> list[str]:
    """Run ``checks`` one after the other, then print how each ended; return the names of those that failed."""
    ends: dict[str, tuple[int, float]] = {}
    for name, command in checks.items():
        click.echo(f"+ {command}")
        start = time.monotonic()
        ends[name] = execute(shlex.split(command)), time.monotonic() - start
    for name, (code, seconds) in ends.items():
        click.echo(f"{name:<12} {seconds:7.0f} s  {f'failed: exit code {code}' if code else 'passed'}")
    return [name for name, (code, _) in ends.items() if code]


@click.command(help=__doc__)
@click.option("--weekly", "of_the_week", is_flag=True, help="What a week needs; on two cores less than two hours.")
@click.option("--only", type=click.Choice(list(CHECKS)), multiple=True, help="Only this one; may be repeated.")
@click.option("--list", "listed", is_flag=True, help="Print the names and their commands.")
def main(of_the_week: bool, only: tuple[str, ...], listed: bool) -> None:
    year, week, _ = datetime.now(UTC).isocalendar()
    known = weekly(100 * year + week) if of_the_week else CHECKS
    checks = {name: command for name, command in known.items() if name in (only or known)}
    if listed:
        for name, command in checks.items():
            click.echo(f"{name:<12} {command}")
    elif run_checks(checks):
        sys.exit(1)


if __name__ == "__main__":
    main()
