"""What a kind of fault is: where it can strike, what it does there, and what a run that it strikes may do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from codex_multi_role.codex.locator import find_codex
from tests.endurance.findings import TURN_ENDS
from tests.endurance.marks import Mark
from tests.endurance.points import Point
from tests.endurance.scenarios.scenario import Struck
from tests.support.teams import LIMITS

KILLED = -9


class Fault:
    """The base of all: a fault that does nothing, to a run that must succeed."""

    name: str
    scenarios: Sequence[Struck] = ()
    """What it strikes."""
    marks: Mapping[str, Mark] = {}
    """By kind of point, what finds the places in the run's process."""
    exit_code: int | None = None
    """The struck process's, where it is the fault's own."""
    honest_outcomes: Collection[str] = ()
    """With which a struck process may stop short."""
    turn_ends: Collection[str | None] = TURN_ENDS
    """The states that a turn may be left in."""
    loses_writes = False
    """Whether a struck process may leave ``run.json`` and its turns as they were before its end."""
    not_compared: Collection[str] = ()
    """Fields of the evidence that may differ from an undisturbed run's."""
    is_paid_once = True
    """Whether no turn may be paid for again, except one in flight."""
    process_seconds = 180.0
    """The most that one process of a run may take."""
    disk_megabytes = 0
    """The size of a disk of its own for the team."""
    jobs = 2
    """How many trials go well at once."""
    default_points: int | None = None
    """How many points of each scenario are tried (None: all)."""

    def prepare(self) -> None:
        """Change the process that the fault is to strike, before it runs."""

    def harm(self, pid: int) -> None:
        """Strike: what the place concerns is the process ``pid``, or only the run's own if it is 0."""

    def counts(self, passed: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """How many points there are of each kind. ``passed``: the places that an undisturbed run passes."""
        return {kind: len(places) for kind, places in passed.items()}

    def limits(self, _point: Point) -> Mapping[str, float]:
        """The limits of every role in a run that is struck there."""
        return LIMITS

    def environment(self, _folder: Path) -> Mapping[str, str]:
        """Variables of the run's processes. ``_folder``: the trial's."""
        return {}

    def codex(self, _folder: Path, _point: Point) -> Path:
        """The program that the run starts as its Codex."""
        return find_codex(None, {})

    def strike(self, _folder: Path, _point: Point) -> str:
        """What the fault did there, if no place in the run's process shows it."""
        return ""

    def must_succeed(self, _point: Point) -> bool:
        """Whether a process that is struck there may not stop short, whatever outcomes are honest."""
        return False
