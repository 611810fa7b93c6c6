"""What a run leaves behind, and how that differs from what an undisturbed one leaves."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from codex_multi_role.run_folder import RunFolder, TurnFolder, list_turns
from tests.teams import read

ENDING = ("status", "outcome", "reason", "exit_code")
CACHES = {"__pycache__", ".pytest_cache"}
TURN_FOLDER = re.compile(r"turn_\d{3}")
ENDS = {"completed", "invalid_reply", "interrupted"}


@dataclass(frozen=True)
class Evidence:
    """What has to be the same however often a run was killed.

    ``ending``: of ``run.json`` and of the process. ``workspace``: by path the mode, and a digest of the bytes.
    ``latest``, ``history``: of ``controller_state.json``, without turn numbers, since a turn that is taken again has
    another.
    """

    ending: dict[str, object]
    workspace: dict[str, str]
    latest: dict[str, object]
    history: dict[str, object]

    @classmethod
    def collect(cls, run: RunFolder, workspace: Path, exit_code: int) -> Evidence:
        record, state = run.record(), read(run.state_path)
        history = enumerate(state["history"], start=1)
        return cls(
            ending={**{key: record[key] for key in ENDING}, "process": exit_code},
            workspace=dict(_entries(workspace)),
            latest={role: _without_numbers(handoff) for role, handoff in state["latest_json_by_role"].items()},
            history={f"{number}": (each["role"], _without_numbers(each["handoff"])) for number, each in history},
        )

    def differences(self, other: Evidence) -> list[str]:
        """In words, what ``other`` has that this has not, and what it lacks."""
        return [
            f"{each.name} {where}: {found!r} instead of {expected!r}"
            for each in fields(self)
            for where, expected, found in _unequal(getattr(self, each.name), getattr(other, each.name))
        ]


def _unequal(expected: Mapping[str, object], found: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    for key in sorted({*expected, *found}):
        if expected.get(key) != found.get(key):
            yield key, expected.get(key), found.get(key)


def _entries(workspace: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(workspace.rglob("*")):
        if CACHES.isdisjoint(path.parts):
            mode = stat.filemode(path.lstat().st_mode)
            content = hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else ""
            yield str(path.relative_to(workspace)), f"{mode} {content}".strip()


def _without_numbers(handoff: object) -> Any:
    return json.loads(TURN_FOLDER.sub("turn_nnn", json.dumps(handoff)))


def inconsistencies(run: RunFolder, resumes: int) -> list[str]:
    """What the run folder of a run that has ended says that cannot be true."""
    return [*_wrong_record(run, resumes), *_wrong_turns(run), *_wrong_history(run), *_wrong_events(run)]


def _wrong_record(run: RunFolder, resumes: int) -> Iterator[str]:
    record = run.record()
    turns = [turn.result() for _, turn in list_turns(run)]
    found = {
        "turns": len(turns),
        "repairs": sum(turn.get("repair_of") is not None for turn in turns),
        "input_tokens": sum(turn.get("tokens", {}).get("input", 0) for turn in turns),
        "output_tokens": sum(turn.get("tokens", {}).get("output", 0) for turn in turns),
    }
    told = {name: record["totals"].get(name) for name in found}
    if told != found:
        yield f"run.json tells of {told}, there are {found}"
    if len(record["resumed_at"]) != resumes or not record["ended_at"]:
        yield f"run.json tells of {len(record['resumed_at'])} resumes of {resumes}, and an end at {record['ended_at']}"


def _wrong_turns(run: RunFolder) -> Iterator[str]:
    for role, turn in list_turns(run):
        if (status := turn.result().get("status")) not in ENDS:
            yield f"{role}/{turn.path.name} ended as {status}"


def _wrong_history(run: RunFolder) -> Iterator[str]:
    numbers: dict[str, int] = {}
    for entry in read(run.state_path)["history"]:
        role, turn = entry["role"], TurnFolder.of(run, entry["role"], entry["turn"])
        if turn.handoff() != entry["handoff"] or turn.result().get("status") != "completed":
            yield f"the history's {role}/{turn.path.name} is not what its folder holds"
        if turn.number <= numbers.get(role, 0):
            yield f"the history has {role}/{turn.path.name} after turn {numbers[role]}"
        numbers[role] = turn.number


def _wrong_events(run: RunFolder) -> Iterator[str]:
    lines = run.events_path.read_text(encoding="utf-8").splitlines()
    try:
        events = [json.loads(line) for line in lines]
    except ValueError as error:
        yield f"events.jsonl: {error}"
        return
    if events[-1]["type"] != "run_ended":
        yield f"events.jsonl ends with {events[-1]['type']}"
