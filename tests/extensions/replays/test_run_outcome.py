"""How a run ended, whatever is in its workspace, and what replays add to the options of a run."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays import ReplayOptions
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.extensions.replays.run_outcome import (
    differences,
    outcome_of,
    places_around,
    suggested_options,
    workspace_tree,
)
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunReport, options_by_name
from tests.support.teams import TeamFolder


def outcome_after(folder: Path, *commands: str) -> dict[str, Any]:
    """Of a run in which ``commands`` changed the workspace, and which is recorded there."""
    team = TeamFolder(folder, {"one": {}}, {})
    (team.workspace / "was.txt").write_text("was")
    definitions = load_definitions(team.options(record=team.workspace / "own.ndjson"))
    run = RunFolder.create(team.runs, None)
    began_with = workspace_tree(definitions, run)
    for command in ("touch own.ndjson", *commands):
        subprocess.run(["sh", "-c", command], cwd=team.workspace, check=True, timeout=20)
        workspace_tree(definitions, run)  # as a turn does
    report = RunReport(run.run_id, run.path, "ended", "cycles_used_up", "", 1, "", {})
    return outcome_of(report, definitions, run, began_with)


@pytest.mark.real
def test_link_counts_by_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    files = outcome_after(tmp_path, "ln -s loop loop", "ln -s ../outside out")["files"]
    assert files == {"loop": sha256("loop"), "out": sha256("../outside")}


@pytest.mark.real
def test_what_can_be_read_for_ever_is_not_read(tmp_path: Path) -> None:
    files = outcome_after(tmp_path, "echo now > was.txt", "rm was.txt && mkfifo was.txt")["files"]
    assert files == {"was.txt": None}


def test_paths_in_replay_options_are_those_of_its_own_machine(tmp_path: Path) -> None:
    """Placeholders become the workspace, home and Python paths of where the replay runs."""
    inputs = {"repo": "<<home>>/lib", "interpreter": "<<python>>/bin/python"}
    header = {"goal": "tidy <<workspace>>/a", "flow": "f", "inputs": inputs, "cycles": 1, "repair_attempts": 0,
        "run_tests": True}  # fmt: skip
    given = suggested_options(Recording(Path("x"), header, (), None, {}, {}), tmp_path)
    assert given["goal"] == f"tidy {tmp_path}/a"
    assert given["inputs"] == {"repo": f"{Path.home()}/lib", "interpreter": f"{sys.prefix}/bin/python"}


def test_user_without_a_home_can_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert places_around(tmp_path).named(f"{tmp_path}/a") == "<<workspace>>/a"


def handoff(summary: str, role: str = "one", unit: str = "") -> dict[str, Any]:
    return {"role": role, "unit": unit, "handoff": {"summary": summary}}


RECORDED: dict[str, Any] = {"status": "ended", "outcome": "timeout", "exit_code": 1,
    "handoffs": [handoff("a"), handoff("a"), handoff("b", "two", "each.1.0")],
    "files": {"a.txt": "1", "b.txt": None}}  # fmt: skip


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({}, []),
        ({"handoffs": RECORDED["handoffs"][::-1]}, []),
        ({"files": {"a.txt": "2", "b.txt": None}}, ["file a.txt: content differs from the recording"]),
        ({"files": {"a.txt": "1", "b.txt": "1"}}, ["file b.txt: content differs from the recording"]),
        (
            {"files": {"b.txt": None, "c.txt": None}},
            [
                "file a.txt: changed in the recording, not now",
                "file c.txt: changed now, not in the recording",
            ],
        ),
        (
            {"handoffs": [*RECORDED["handoffs"][::2], handoff("c")]},
            [
                'handoff of one: recorded but missing now: {"summary": "a"}',
                'handoff of one: present now but not recorded: {"summary": "c"}',
            ],
        ),
        (
            {"handoffs": []},
            [
                'handoff of one: recorded but missing now (2 times): {"summary": "a"}',
                'handoff of two (each.1.0): recorded but missing now: {"summary": "b"}',
            ],
        ),
        ({"status": "failed"}, ["status is failed, recorded: ended"]),
        ({"outcome": "done"}, ["outcome is done, recorded: timeout"]),
        (
            {"exit_code": 3, "handoffs": [], "files": {"b.txt": None, "c.txt": "1"}},
            [
                "exit_code is 3, recorded: 1",
                "missing recorded handoffs: one (2), two",
                "files that differ from the recording: a.txt",
            ],
        ),
    ],
)
def test_in_what_a_run_differs_from_the_recorded_one(now: dict[str, Any], told: list[str]) -> None:
    assert differences(RECORDED, {**RECORDED, **now}) == told


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_run_remembers_them() -> None:
    options = RunOptions(
        workspace="/w", runs_dir="/r", added=[ReplayOptions(record=Path("/a.ndjson"), replay_match="nearest")]
    )
    assert RunOptions.from_record(json.loads(json.dumps(options.as_record()))) == options
    assert options_by_name({"added": [ReplayOptions(replay_match="nearest")]}) == {"replay_match": "nearest"}
    assert options.changed(added=[ReplayOptions(record=Path("/b"))]).added == {**options.added, "record": Path("/b")}


@pytest.mark.parametrize("reuse", ["", "*", "20260131_101500_0a1b2c3d"])
def test_older_run_has_the_defaults(reuse: str) -> None:
    """Whether it took turns over by an option that has ended, or recorded every option."""
    recorded = {"replay_match": "strict", "reuse": reuse, "record": None, "replay": None}
    assert RunOptions.from_record({**RunOptions().as_record(), **recorded}).added == {}


def test_wrong_value_is_refused() -> None:
    with pytest.raises(UsageError, match="replay_match must be strict or nearest, not 'most'"):
        RunOptions(added=[ReplayOptions(replay_match="most")])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="added must be a list of AddedOptions of extensions, not 'strict'"):
        RunOptions(added="strict")  # type: ignore[arg-type]
