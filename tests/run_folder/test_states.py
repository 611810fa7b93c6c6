from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.run_folder import EventLog, Record, RunFolder
from codex_multi_role.run_folder.states import (
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    PENDING,
    RUN,
    ItemStates,
    States,
    read_states,
)


def folder_in(path: Path) -> RunFolder:
    return RunFolder.create(path / "runs", "one")


@contextmanager
def session(folder: RunFolder, shown: list[Record] | None = None) -> Iterator[States]:
    events = EventLog(folder.events_path, folder.redact)
    states = States(folder, events)
    if shown is not None:
        events.subscribe(lambda record: shown.append({"told": record["state"], **written(folder)["run"]}))
    yield states
    events.close()


def written(folder: RunFolder) -> Any:
    return json.loads((folder.path / "states.json").read_text())


def test_state_is_saved_before_it_is_shown_and_shown_once(tmp_path: Path) -> None:
    shown = list[Record]()
    with session(folder_in(tmp_path), shown) as states:
        states.move(RUN, "", "PLANNING")
        states.move(RUN, "", "PLANNING")
        for reason in ("no plan", "no plan", ""):
            states.move(RUN, "", "FAILED", reason)
    assert [(each["told"], each["state"], each["reason"]) for each in shown] == [
        ("PLANNING", "PLANNING", ""),
        ("FAILED", "FAILED", "no plan"),
    ]


def test_resumed_run_keeps_states_and_repairs_states_file(tmp_path: Path) -> None:
    """A kill may leave the file out of date."""
    folder = folder_in(tmp_path)
    with session(folder) as states:
        states.move("solve.1.0", "A", PENDING)
    (folder.path / "states.json").unlink()
    with session(folder) as states:
        assert states.latest("solve.1.0") == PENDING
        assert written(folder) == read_states(folder)
        assert written(folder)["items"][0]["item"] == "A"


def test_item_that_is_walked_again_tells_what_is_new_only(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with session(folder) as states:
        states.begin({"solve.1.0": ("A", "")})
        first = ItemStates(states, "solve.1.0", "A")
        first.become(IN_PROGRESS)
        first.publish()
    with session(folder) as states:  # killed after the first try was recorded: only now it is told how that ended
        states.begin({"solve.1.0": ("A", "")})
        again = ItemStates(states, "solve.1.0", "A")
        for state, really_done in ((IN_PROGRESS, False), (FAILED, True), (IN_PROGRESS, True)):
            again.become(state)
            if really_done:
                again.publish()
    with session(folder) as states:
        last = ItemStates(states, "solve.1.0", "A")
        for state in (IN_PROGRESS, FAILED, IN_PROGRESS, COMPLETED):
            last.become(state)
        last.publish()
    (item,) = read_states(folder)["items"]
    assert [each["state"] for each in item["history"]] == [PENDING, IN_PROGRESS, FAILED, IN_PROGRESS, COMPLETED]


def test_items_begin_with_one_writing_of_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, written_times = folder_in(tmp_path), 0
    write = States._write

    def counted(states: States) -> None:
        nonlocal written_times
        written_times += 1
        write(states)

    monkeypatch.setattr(States, "_write", counted)
    items = {f"solve.1.{number}": (f"T{number}", "") for number in range(100)}
    with session(folder) as states:
        states.move("solve.1.7", "T7", COMPLETED)
        states.begin(items)
    assert written_times == 2
    assert written(folder) == read_states(folder)
    assert {each["unit"]: each["state"] for each in written(folder)["items"]} == {
        **dict.fromkeys(items, PENDING),
        "solve.1.7": COMPLETED,
    }


def test_run_without_states_has_no_file(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with session(folder):
        ItemStates(None, "solve.1.0", "A").publish()
    assert not (folder.path / "states.json").exists()
    assert read_states(folder) == {"run": None, "items": []}


def test_file_matches_events_and_each_change_formats_one_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the item that changed is formatted again, however many items there are."""
    folder = folder_in(tmp_path)
    events = EventLog(folder.events_path, folder.redact)
    described: list[str] = []

    def as_text(summary: dict[str, Any]) -> str:
        described.append(summary["unit"])
        return json.dumps(summary, ensure_ascii=False, indent=2)

    monkeypatch.setattr("codex_multi_role.run_folder.states._as_text", as_text)
    states = States(folder, events)
    for number in range(20):
        for state in ("PENDING", "IN_PROGRESS", "COMPLETED"):
            states.move(f"solve.1.{number}", f"T{number}\u2028\n\x85", state, 'because of "x"\n  y')
            assert (folder.path / "states.json").read_text() == json.dumps(
                read_states(folder), ensure_ascii=False, indent=2
            ) + "\n"
    states.move(RUN, "", "working")
    assert written(folder) == read_states(folder)
    assert len(described) == 61
    events.close()
