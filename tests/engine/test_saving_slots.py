"""The journal records a step only after the run was saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from codex_multi_role.engine.journal_slots import JournalSlots, RunHalted
from codex_multi_role.errors import StorageError
from codex_multi_role.reading.json_types import Json


@dataclass
class Slot:
    """A slot of a journal that notes in ``log`` what it records; with ``past``, it is recorded already."""

    log: list[str]
    past: Json | None = None
    step_id: int = 1

    def find(self, _: str, /) -> Json | None:
        return self.past

    def add(self, _: str, result: Json, /) -> Json:
        self.log.append("record")
        return result


def slots(log: list[str], slot: Slot, save: Callable[[], object]) -> JournalSlots:
    return JournalSlots(lambda: log.append("before"), iter([slot]), save=save).reserve(1).with_hook(lambda: None)


def recorded(row: JournalSlots, log: list[str]) -> Json:
    with row.record("turn") as work:
        if work.is_due:
            log.append("work")
            work.result = {"done": True}
    return work.result


def test_run_is_saved_between_work_and_record() -> None:
    log: list[str] = []
    row = slots(log, Slot(log), lambda: log.append("save")).cancellable(lambda: None)
    assert recorded(row, log) == {"done": True}
    assert log == ["before", "work", "save", "record"]


def test_replayed_step_is_not_saved() -> None:
    log: list[str] = []
    assert recorded(slots(log, Slot(log, {"past": 1}), lambda: log.append("save")), log) == {"past": 1}
    assert log == []


def test_failing_save_halts_before_record() -> None:
    log: list[str] = []

    def save() -> None:
        raise StorageError("the store is full", "Free some space.")

    with pytest.raises(RunHalted) as caught:
        recorded(slots(log, Slot(log), save), log)
    assert (caught.value.ending.outcome, caught.value.ending.hint) == ("storage_failed", "Free some space.")
    assert log == ["before", "work"]
