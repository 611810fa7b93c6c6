"""What keeps a run of a thousand turns flat: every turn leaves as much as any other, and next to nothing in memory.

`benchmarks/long_run.py` measures memory and time over the whole thousand; this is a sample of forty.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import threading
import weakref
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from codex_multi_role import RunReport, run
from codex_multi_role.flow import HistoryEntry
from codex_multi_role.host import watched_files
from codex_multi_role.playbook.request import AnswerKey
from codex_multi_role.run_folder import Record
from tests.support.teams import TeamFolder, say

pytestmark = pytest.mark.long
ROLES = ("one", "two", "three", "four")
CYCLES = 10
TURNS = CYCLES * len(ROLES)
WARM = 12
KEPT_A_TURN = (HistoryEntry, AnswerKey)
"""A turn's place in the history, and what the embedded model remembers of its latest 10,000 requests."""

MOST_OBJECTS_A_TURN = 20
SAMPLES = 5
"""The smallest of so many counts is used: other threads now and then hold some hundred objects of half a message."""


class Retained:
    """What this process holds now: objects by type, ours and all, threads, open files."""

    def __init__(self) -> None:
        kinds = min((_kinds() for _ in range(SAMPLES)), key=Counter.total)
        self.ours = Counter({kind: n for kind, n in kinds.items() if "codex_multi_role" in str(kind.__module__)})
        self.objects = kinds.total()
        self.threads = threading.active_count()
        self.files = psutil.Process().num_fds()


def _kinds() -> Counter[type]:
    gc.collect()
    kinds = Counter(type(each) for each in gc.get_objects())
    del kinds[weakref.ReferenceType]  # sqlite3 clears its own by the two hundred
    return kinds


Measured = tuple[RunReport, Retained, Retained]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """A run of forty turns, and what was retained at turn twelve and at turn forty."""
    plays = {role: [say("one more step")] for role in ROLES}
    team = TeamFolder(tmp_path_factory.mktemp("long"), {role: {} for role in ROLES}, plays, {"repeat_last": True})
    ends: list[Retained | None] = []

    def watch(event: Record) -> None:
        if event["type"] == "turn_ended":
            ends.append(Retained() if len(ends) + 1 in (WARM, TURNS) else None)

    report = run(team.options(cycles=CYCLES), watch)
    assert (report.outcome, len(ends)) == ("cycles_used_up", TURNS)
    warm, end = ends[WARM - 1], ends[TURNS - 1]
    assert warm is not None
    assert end is not None
    return report, warm, end


def test_turn_keeps_its_place_in_the_history_and_nothing_else(measured: Measured) -> None:
    _, warm, end = measured
    kept = Counter({kind: n for kind, n in (end.ours - warm.ours).items() if kind.__module__ != watched_files.__name__})
    assert kept == Counter(dict.fromkeys(KEPT_A_TURN, TURNS - WARM))  # the watch of YAML begins a second after the run
    assert end.objects - warm.objects < MOST_OBJECTS_A_TURN * (TURNS - WARM)


def test_threads_and_open_files_do_not_add_up(measured: Measured) -> None:
    _, warm, end = measured
    assert end.threads - warm.threads < (TURNS - WARM) / 2
    assert end.files - warm.files < (TURNS - WARM) / 2


def test_journal_has_one_row_per_turn_of_constant_size(measured: Measured) -> None:
    """No row is notably larger than the first."""
    rows = "SELECT length(output) FROM steps ORDER BY position"
    with closing(sqlite3.connect(measured[0].folder / "journal.sqlite")) as journal:
        sizes = [size for (size,) in journal.execute(rows)]
    assert len(sizes) == TURNS
    assert max(sizes) <= sizes[0] * 1.1


def test_turn_asks_says_and_writes_as_much_as_the_one_before(measured: Measured) -> None:
    for folder in (measured[0].folder / role for role in ROLES):
        turns = sorted(folder.glob("turn_*"))
        assert len(turns) == CYCLES
        assert len({tuple(sorted(path.name for path in turn.iterdir())) for turn in turns}) == 1
        assert len({(turn / "prompt.txt").stat().st_size for turn in turns[1:]}) == 1
        ends = [number for number, line in enumerate(lines(folder / "events.jsonl")) if "turn/completed" in line]
        messages = [after - before for before, after in pairwise(ends)]
        assert max(messages) - min(messages) <= 2


def test_events_grow_by_the_turn(measured: Measured) -> None:
    kinds = Counter(json.loads(line)["type"] for line in lines(measured[0].folder / "events.jsonl"))
    assert kinds["turn_started"] == kinds["turn_ended"] == TURNS
    assert kinds.total() <= 4 * TURNS + 10


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
