"""What looking at finished runs reads: nothing twice, and no more than it shows."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.run_folder import RunFolder, event_log
from codex_multi_role.run_folder.events import RoleActivity
from tests.support.console import console
from tests.support.recorded_runs import make_run

ACTIVITY = json.dumps(RoleActivity("planner", 1, "command: ls", at="2026-01-31T10:15:04.500+00:00").as_record()) + "\n"
TIMES = 500


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was opened."""
    found: Counter[str] = Counter()
    really_open = io.open

    def count(file: Any, *arguments: Any, **options: Any) -> Any:
        found[str(file)] += 1
        return really_open(file, *arguments, **options)

    monkeypatch.setattr(io, "open", count)
    return found


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many events of each type were parsed."""
    found: Counter[str] = Counter()
    really_read: Callable[..., Any] = event_log.event_of

    def count(record: dict[str, Any]) -> Any:
        found[record["type"]] += 1
        return really_read(record)

    monkeypatch.setattr(event_log, "event_of", count)
    return found


def test_list_opens_one_file_per_run_that_ended(tmp_path: Path, opened: Counter[str]) -> None:
    for number in range(5):
        make_run(tmp_path / "runs", f"run{number}")
    opened.clear()
    listed = console("runs", folder=tmp_path).stdout.splitlines()
    assert len(listed) == 6
    assert {Path(name).name: times for name, times in opened.items() if "runs/" in name} == {"run.json": 1}
    assert len([name for name in opened if "runs/" in name]) == 5


def crowded(folder: RunFolder) -> None:
    """Put hundreds of activities between all events of the run."""
    lines = folder.events_path.read_text().splitlines(keepends=True)
    folder.events_path.write_text((ACTIVITY * TIMES).join(lines))


@pytest.mark.parametrize(
    "command",
    [["show"], pytest.param(["report", "--output", "page.html"], marks=pytest.mark.extensions), ["show", "--json"]],
)
def test_activities_are_passed_over_without_parsing(
    tmp_path: Path, parsed: Counter[str], opened: Counter[str], command: list[str]
) -> None:
    folder = make_run(tmp_path / "runs", "first")
    calm = console(*command, "first", folder=tmp_path)
    before = parsed.total()
    crowded(folder)
    parsed.clear()
    opened.clear()
    crowd = console(*command, "first", folder=tmp_path)
    assert (calm.returncode, calm.stdout) == (crowd.returncode, crowd.stdout)
    assert 0 < parsed.total() <= 2 * before + 1
    # A report is also about the states of the files at three points, of which only some lines are parsed.
    assert opened[str(folder.events_path)] == (4 if command[0] == "report" else 1)
