"""What was paid for: the model requests that the playbook server saw, held against what the journal says is done.

A turn goes by its place in the journal, which is the same in every run of a scenario.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from codex_multi_role.playbook import AnswerKey
from codex_multi_role.run_folder import RunFolder, TurnFolder, list_turns
from tests.support.recorded_steps import recorded_steps


class Turn(NamedTuple):
    """What the model learns of a turn, whichever attempt it is. Turns of two walks through one flow may share it."""

    role: str
    visit: int
    repair: int


def turns_by_place(run: RunFolder, but: Collection[str] = ()) -> dict[int, Turn]:
    """All turns of a run that nobody disturbed: their folders, and what was sent to Codex, in one order.

    ``but``: without those of these roles.
    """
    folders: dict[str, list[TurnFolder]] = {}
    for instance, folder in list_turns(run):
        if instance not in but:
            folders.setdefault(instance, []).append(folder)
    return {
        folder.result()["journal_step"]: turn
        for instance in folders
        for folder, turn in zip(folders[instance], _sent(run.path / instance / "events.jsonl"), strict=True)
    }


def _sent(wire_log: Path) -> Iterator[Turn]:
    for line in wire_log.read_text(encoding="utf-8").splitlines():
        message = json.loads(line).get("message", {})
        if message.get("method") == "turn/start":
            told = message["params"]["responsesapiClientMetadata"]
            yield Turn(told["multi_role_role"], int(told["multi_role_visit"]), int(told["multi_role_repair"]))


def in_flight(run: RunFolder) -> Counter[int]:
    """How often each unfinished turn was started, by its place, in a run without a process.

    A turn that has its result in its folder is done, whether the journal knows it or not.
    """
    results = [result for _, turn in list_turns(run) if "journal_step" in (result := turn.result())]
    begun = Counter(result["journal_step"] for result in results)
    done = {*recorded_steps(run.journal_path), *(each["journal_step"] for each in results if each.get("recorded"))}
    return Counter({place: times for place, times in begun.items() if place not in done})


class Account(NamedTuple):
    """``wrong`` says in words what was paid for too often, or never; ``twice`` counts turns that may be."""

    wrong: list[str]
    twice: int


def audit(
    due: Mapping[AnswerKey, int], paid: Mapping[AnswerKey, int], turns: Mapping[int, Turn], free: Mapping[int, int]
) -> Account:
    """Hold the requests ``paid`` against those ``due``. ``free``: how often a turn may be paid for again, by place."""
    sharing, again = Counter(turns.values()), Counter[Turn]()
    for place, times in free.items():
        again[turns[place]] += times
    wrong, twice = [], 0
    for ask in sorted({*due, *paid}):
        turn = Turn(ask.role, ask.visit, ask.repair)
        owed, given = due.get(ask, 0), paid.get(ask, 0)
        if owed < given <= owed + again[turn] * owed // sharing[turn]:
            twice += 1
        elif given != owed:
            wrong.append(f"{given} model requests instead of {owed} for {ask}")
    return Account(wrong, twice)
