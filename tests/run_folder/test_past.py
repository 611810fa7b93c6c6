from __future__ import annotations

import json
from pathlib import Path

from codex_multi_role.run_folder import (
    RunEvent,
    RunFolder,
    TurnFolder,
    beginnings,
    events_with_inherited,
    inherit,
    inherited_threads,
    list_turns,
    own_turns,
)
from codex_multi_role.run_folder import events as e
from tests.support.workspaces import files_below

AT = "2026-01-31T10:15:00.000+00:00"


def step(name: str, visit: int, place: int, workspace: str = "") -> RunEvent:
    return e.StepStarted(name, visit, 1, place, workspace, at=AT)


def turn(role: str, number: int) -> RunEvent:
    return e.TurnStarted(role, number, 1, 1, None, at=AT)


STARTED = e.RunStarted("first", "g", "own", 1, ["one", "two"], "/w", "/f", None, False, at=AT)
EVENTS: list[RunEvent] = [
    STARTED,
    step("a", 1, 1, "t1"),
    turn("one", 1),
    step("a.1/inner", 1, 0),
    e.TestsStarted(1, "one", 1, at=AT),
    step("a.1", 1, 5, "t2"),
    turn("two", 1),
    STARTED,
    step("a.1", 1, 5, "t3"),
    turn("two", 2),
    e.TestsStarted(2, "two", 2, at=AT),
    step("a", 2, 9, "t4"),
    turn("one", 2),
]


def lines(events: list[RunEvent]) -> str:
    return "".join(json.dumps(event.as_record()) + "\n" for event in events)


def folder_of(path: Path, name: str) -> RunFolder:
    return RunFolder.create(path / "runs", name)


def a_run(path: Path) -> RunFolder:
    run = folder_of(path, "first")
    run.events_path.write_text(lines(EVENTS) + '{"type": "cut sho')
    for role, number in (("one", 1), ("two", 1), ("two", 2), ("one", 2)):
        made = TurnFolder.create(run, role)
        made.begin(f"{role} {number}", {"thread_id": role})
        made.write_result(
            {
                "status": "completed",
                "thread_id": f"thread of {role}",
                "turn_id": f"{role}-{number}",
                "recorded": {"turn": number},
            }
        )
    for name in (
        "tests/001",
        "tests/002",
        "checks/a.1",
        "checks/a.1.1",
        "checks/a.1.0/deep",
        "checks/a.2",
        "checks/b.1",
    ):
        (run.path / name).mkdir(parents=True)
        (run.path / name / "result.json").write_text(name)
    (run.path / "reviews").mkdir()
    for key in ("a.1", "a.1.1", "a.2", "one.turn_001.1", "one.turn_002.1"):
        (run.path / "reviews" / f"{key}.json").write_text(key)
    return run


def test_visit_starts_at_its_first_start_event(tmp_path: Path) -> None:
    """A resumed run reports the start of an unfinished visit again."""
    found = beginnings(events_with_inherited(a_run(tmp_path)))
    assert [(each.step, each.visit, each.place, each.workspace) for each in found] == [
        ("a", 1, 1, "t1"),
        ("a.1", 1, 5, "t2"),
        ("a", 2, 9, "t4"),
    ]


def test_what_lies_behind_is_inherited_and_nothing_else(tmp_path: Path) -> None:
    run, fork = a_run(tmp_path), folder_of(tmp_path, "second")
    events = events_with_inherited(run)
    inherit(run, fork, events, beginnings(events)[1])
    assert files_below(fork.path) == [
        "checks/a.1.0/deep/result.json",
        "checks/a.1/result.json",
        "inherited_events.jsonl",
        "one/turn_001/prompt.txt",
        "one/turn_001/turn.json",
        "reviews/a.1.json",
        "reviews/one.turn_001.1.json",
        "tests/001/result.json",
    ]
    assert events_with_inherited(fork) == events[:5]
    assert not TurnFolder.of(run, "one", 1).result().get("inherited")


def test_inherited_turns_are_not_own_and_require_forked_threads(tmp_path: Path) -> None:
    run, fork = a_run(tmp_path), folder_of(tmp_path, "second")
    events = events_with_inherited(run)
    inherit(run, fork, events, beginnings(events)[2])
    assert (len(list(list_turns(fork))), list(own_turns(fork))) == (3, [])
    TurnFolder.create(fork, "one").write_result({"thread_id": "new", "turn_id": "new-1", "recorded": {}})
    assert [role for role, _ in own_turns(fork)] == ["one"]
    assert inherited_threads(fork) == {"thread of one": "one-1", "thread of two": "two-2"}
    assert inherited_threads(run) == {}


def test_thread_is_forked_after_last_answered_inherited_turn(tmp_path: Path) -> None:
    run = folder_of(tmp_path, "first")
    for result in (
        {"thread_id": "t", "turn_id": "t-1", "recorded": {"turn": 1}},
        {"thread_id": "u", "turn_id": "u-1", "recorded": {"turn": 2}},
        {"thread_id": "t", "turn_id": "t-2", "status": "crashed", "recorded": None},
        {"thread_id": "t"},
        {},
        {"thread_id": "never answered", "turn_id": "v-1", "recorded": None},
    ):
        TurnFolder.create(run, "one").write_result({**result, "inherited": True})
    assert inherited_threads(run) == {"t": "t-1", "u": "u-1", "never answered": ""}


def test_fork_of_a_fork_inherits_from_both(tmp_path: Path) -> None:
    run, fork, second = a_run(tmp_path), folder_of(tmp_path, "second"), folder_of(tmp_path, "third")
    events = events_with_inherited(run)
    inherit(run, fork, events, beginnings(events)[1])
    own = [step("a.1", 1, 5, "t5"), turn("two", 1), step("b", 1, 8, "t6")]
    fork.events_path.write_text(lines(own))
    TurnFolder.create(fork, "two").begin("", {})
    events = events_with_inherited(fork)
    assert [(each.key, each.workspace) for each in beginnings(events)] == [
        ("a.1", "t1"),
        ("a.1.1", "t5"),
        ("b.1", "t6"),
    ]
    inherit(fork, second, events, beginnings(events)[2])
    assert [(role, each.number) for role, each in list_turns(second)] == [("one", 1), ("two", 1)]
    assert list(own_turns(second)) == []


def test_inherited_events_are_copied_as_they_were_written(tmp_path: Path) -> None:
    """Also those of another version, and fields that this one does not have."""
    run, fork = folder_of(tmp_path, "first"), folder_of(tmp_path, "second")
    strange = f'{{"type": "warning", "at": "{AT}", "message": "ü", "more": 1}}\n{{"type": "not_invented_yet"}}\n'
    run.events_path.write_text(strange + lines([step("a", 1, 1), turn("one", 1)]), encoding="utf-8")
    events = events_with_inherited(run)
    inherit(run, fork, events, beginnings(events)[0])
    assert fork.inherited_events_path.read_text(encoding="utf-8") == strange
