"""Every thread of a run has a name, and something that ends it: none outlives the run."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from codex_multi_role import run
from tests.support.teams import Record, fan, say, solver

pytestmark = pytest.mark.real

UNNAMED = re.compile(r"(Thread|ThreadPoolExecutor|Dummy)-\d")
"""What Python calls a thread that nobody named."""
EXPECTED = (
    "codex-start_",
    "codex-stdout-",
    "codex-stderr-",
    "codex-databases",
    "playbook-connection",
    "item_",
    "role_",
    "flow",
)
ENDING_SECONDS = 5.0


def test_every_thread_of_a_run_has_a_name_and_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    everybody: Record = {"id": "all", "ask": "*"}
    team = solver(tmp_path, [fan(["a", "b"], concurrency=2), everybody], [say()] * 3)
    before = set(threading.enumerate())
    seen: list[threading.Thread] = []
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        seen.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    report = run(team.options(flow="own"))
    assert report.outcome == "success", report
    for each in set(threading.enumerate()) - before:  # one that has nothing left may not have got round to ending
        each.join(ENDING_SECONDS)
    assert [each.name for each in set(threading.enumerate()) - before] == []
    unnamed = [each for each in seen if UNNAMED.match(each.name)]
    assert {type(each).__module__.partition(".")[0] for each in unnamed} <= {"watchdog"}
    names = " ".join(each.name for each in seen)
    assert [name for name in EXPECTED if name not in names] == []
