"""The journal in a run folder: each step is recorded once, and a file that cannot be trusted is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.journal_file import fork_file, open_file, steps_of_file
from codex_multi_role.engine.journal_slots import JournalSlot, JournalSlots, RecordedStep, RunHalted
from codex_multi_role.errors import StorageError
from codex_multi_role.reading.json_types import Json
from tests.support.processes import wait_until


class Walk:
    """Does what ``take`` does with the slots, in the thread of the journal."""

    def __init__(self, take: Callable[[Iterator[JournalSlot]], object]) -> None:
        self._take = take
        self.result: object = None
        self.is_over = False

    def work(self, slots: Iterator[JournalSlot]) -> None:
        try:
            self.result = self._take(slots)
        except Exception as error:
            self.result = error
        self.is_over = True


def walked(path: Path, take: Callable[[Iterator[JournalSlot]], object]) -> Any:
    """What ``take`` returned or raised in one session."""
    walk = Walk(take)
    with open_file(path) as begin:
        begin(cast(DurableRun, walk))
        wait_until(lambda: walk.is_over, "the end of the walk")
    return walk.result


def three(slots: Iterator[JournalSlot]) -> list[Json]:
    return [done(next(slots), f"step {number}", partial(dict, number=number)) for number in (1, 2, 3)]


def done(slot: JournalSlot, name: str, work: Callable[[], Json]) -> Json:
    """What is recorded in the slot, otherwise what ``work`` returns, once it is."""
    known = slot.find(name)
    return slot.add(name, work()) if known is None else known


def never() -> Json:
    raise AssertionError("the step is recorded")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_recorded_steps_are_returned_and_not_done_again(path: Path) -> None:
    first = walked(path, three)
    again = walked(path, lambda slots: [done(next(slots), f"step {number}", never) for number in (1, 2, 3)])
    assert first == again == [{"number": 1}, {"number": 2}, {"number": 3}]


def test_result_is_the_same_before_and_after_a_replay(path: Path) -> None:
    """What JSON cannot express as it is, such as a tuple, would otherwise change when a run is resumed."""
    text = 'quotes " and half a pair \ud83d and a zero \0'
    first = walked(path, lambda slots: done(next(slots), "mixed", lambda: {"pair": (1, 2), "text": text}))
    again = walked(path, lambda slots: done(next(slots), "mixed", never))
    assert first == again == {"pair": [1, 2], "text": text}


def test_work_that_fails_is_not_recorded(path: Path) -> None:
    assert isinstance(walked(path, lambda slots: done(next(slots), "step", never)), AssertionError)
    assert walked(path, lambda slots: done(next(slots), "step", lambda: {"done": True})) == {"done": True}


def test_other_work_at_a_recorded_position_is_refused(path: Path) -> None:
    walked(path, three)
    error = walked(path, lambda slots: done(next(slots), "another", never))
    assert isinstance(error, StorageError)
    assert str(error) == 'position 1 of the journal has "step 1", and "another" would be done there'


def test_many_threads_record_at_once(path: Path) -> None:
    def take(slots: Iterator[JournalSlot]) -> list[Json]:
        drawn = [next(slots) for _ in range(200)]
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(lambda slot: done(slot, "item", lambda: {"of": slot.step_id}), drawn))

    assert walked(path, take) == [{"of": number} for number in range(1, 201)]
    assert len(steps_of_file(path)) == 200


def test_closed_journal_records_nothing_more(path: Path) -> None:
    drawn: list[JournalSlot] = []
    walked(path, lambda slots: drawn.append(next(slots)))
    with pytest.raises(sqlite3.ProgrammingError):
        done(drawn[0], "late", lambda: {})
    assert steps_of_file(path) == {}


def test_live_journal_can_be_read_and_forked(path: Path, tmp_path: Path) -> None:
    """Neither changes it, and the fork has only what was recorded before the position."""
    fork = tmp_path / "fork.sqlite"

    def take(slots: Iterator[JournalSlot]) -> object:
        three(slots)
        return steps_of_file(path), fork_file(path, fork, 3)

    live, forked = walked(path, take)
    assert live == {number: RecordedStep(f"step {number}", {"number": number}) for number in (1, 2, 3)}
    assert forked == steps_of_file(fork) == {number: live[number] for number in (1, 2)}
    assert steps_of_file(path) == live
    assert walked(fork, lambda slots: [done(next(slots), f"step {number}", never) for number in (1, 2)])


@pytest.mark.parametrize("content", [None, b""])
def test_journal_that_no_session_reached_has_no_steps(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    assert steps_of_file(path) == {}
    with pytest.raises(StorageError, match=r"the journal .* is missing"):
        fork_file(path, path.with_name("fork.sqlite"), 1)


def test_journal_of_an_earlier_program_is_refused(path: Path) -> None:
    """They had the tables of another engine, and no version in the file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE operation_outputs (workflow_uuid, function_id, output)")
    for use in (lambda: walked(path, three), lambda: steps_of_file(path)):
        with pytest.raises(StorageError, match="has version unknown, this program writes 2") as caught:
            use()
        assert "run.json" in caught.value.hint


def test_damaged_journal_is_refused_before_anything_is_done(path: Path) -> None:
    walked(path, three)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    for use in (lambda: walked(path, three), lambda: steps_of_file(path)):
        with pytest.raises(StorageError, match=r"journal\.sqlite cannot be (opened|read)"):
            use()


def test_journal_that_cannot_be_opened_may_lack_a_file_descriptor(path: Path) -> None:
    """SQLite does not say so, and the descriptor may be free again by the time anybody looks."""
    path.mkdir()
    with pytest.raises(StorageError, match="unable to open database file") as caught:
        walked(path, three)
    assert "raise the limit (`ulimit -n`). Then resume the run." in caught.value.hint


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
