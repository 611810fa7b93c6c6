"""Reads what runs left in their folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from codex_multi_role.errors import RunNotFound, RunStatus, StorageError, UsageError
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import (
    Question,
    Questions,
    RunFolder,
    TurnFolder,
    list_turns,
    skim_with_inherited,
    totals_of,
)
from codex_multi_role.run_folder.events import TurnStarted
from codex_multi_role.run_folder.folder import RUN_ID, SHARED, has_reached_end, number_of
from codex_multi_role.run_folder.owner import is_alive
from codex_multi_role.run_folder.past import NOW, START, state_at
from codex_multi_role.run_folder.turn_folder import INHERITED

if TYPE_CHECKING:
    from codex_multi_role.workspace.differences import Changes

TurnKey = tuple[str, int]
"""A turn's role and number."""


class PageOfRun(Protocol):
    """An entry of the group ``codex_multi_role.run_pages``: a page of each run that has ended.

    ``prepare`` imports what it needs, while the run has nothing else to do. ``write`` may raise anything; ``command``
    is the one that tries again.
    """

    command: str

    def prepare(self) -> None: ...
    def write(self, folder: RunFolder, /) -> Path: ...


PAGES: Registry[PageOfRun] = Registry("page of runs", "codex_multi_role.run_pages", {})


def read_turns(folder: RunFolder, began: Iterable[TurnKey] | None = None) -> list[dict[str, Any]]:
    """Read ``turn.json`` of every turn in the order they ``began``, with the handoff's ``summary``.

    The order is read from the log unless it is given.
    """
    return [
        {"role": role, "turn": turn.number, "folder": str(turn.path), **turn.result()}
        | {"summary": read_object(turn.path / "handoff.json").get("summary", "")}
        for role, turn in _in_order(folder, began)
    ]


def changed_files(folder: RunFolder, record: Mapping[str, Any], began: Iterable[TurnKey] | None = None) -> list[str]:
    """Return the files that the run changed, relative to the workspace; ``record``: its ``run.json``.

    Without an end, those are the files that its own turns have changed, in order of their first change. ``began`` as in
    `read_turns`.
    """
    if isinstance(files := record.get("files"), list):
        return [str(file["path"]) for file in files]
    turns = (turn for _, turn in _in_order(folder, began))
    own = (turn for turn in turns if not (turn.result().get(INHERITED) or turn.undone_path.exists()))
    return list(dict.fromkeys(path for turn in own for path in files_of(turn)))


def changes_of(folder: RunFolder, since: str = START, until: str = NOW) -> Changes:
    """What changed between two points of the run, as `state_at` names them; the latest recorded state is `NOW`.

    Raises `UsageError` if a state was not recorded, `StorageError`.
    """
    from codex_multi_role.workspace.differences import Changes  # here: looking at a run needs no git

    before, after = (state_at(folder, point) for point in (since, until))
    if not before or not after or not folder.snapshots_path.is_dir():
        where = "" if (since, until) == (START, NOW) else f" at {since} or {until}"
        hint = f"Points are {START}, {NOW}, STEP:VISIT, and the key of a question."
        raise UsageError(f"run {folder.run_id} recorded no state of the workspace{where}", hint)
    places = (folder.snapshots_path.absolute(), folder.path.absolute())
    return Changes.recorded(*places, before, after, tuple(runs_inside(folder)))


def patch_of(folder: RunFolder, changes: Changes) -> str:
    """These changes as a patch for people, without secrets. Raises `StorageError`."""
    return folder.redact(changes.patch().decode("utf-8", "replace"))


def runs_inside(folder: RunFolder) -> list[str]:
    """The folder of all runs, if it is in the workspace: a ``.gitignore`` can re-include it in the states."""
    root, runs_dir = Path(str(folder.record().get("workspace", ""))), folder.path.resolve().parent
    inside = runs_dir != root and runs_dir.is_relative_to(root)
    return [runs_dir.relative_to(root).as_posix()] if inside else []


def files_of(turn: TurnFolder) -> list[str]:
    """The files that a turn changed, by itself or by those that it submitted."""
    written = (str(PurePosixPath(file["path"])) for file in turn.files() if file["status"] == "WROTE")
    return [*dict.fromkeys([*map(str, turn.result().get("changed_paths") or ()), *written])]


def _in_order(folder: RunFolder, began: Iterable[TurnKey] | None) -> list[tuple[str, TurnFolder]]:
    order = {turn: position for position, turn in enumerate(_began(folder) if began is None else began)}
    return sorted(list_turns(folder), key=lambda each: order.get((each[0], each[1].number), len(order)))


def _began(folder: RunFolder) -> Iterator[TurnKey]:
    events = skim_with_inherited(folder, {TurnStarted})
    return ((event.role, event.turn) for event in events if isinstance(event, TurnStarted))


def read_tests(folder: RunFolder) -> list[dict[str, Any]]:
    """Read ``result.json`` of every test run in order, after its number and folder."""
    results = [(number_of(path.parent, ""), path) for path in (folder.path / "tests").glob("*/result.json")]
    return [
        {"number": number, "folder": str(path.parent), **read_object(path)}
        for number, path in sorted(results)
        if number
    ]


def read_record(folder: RunFolder) -> dict[str, Any]:
    """Read ``run.json`` for people; a record that cannot be read says so: one bad run must not hide the others."""
    try:
        record = folder.record()
        return record | {"hint": folder.complete(str(record.get("hint") or ""))}
    except RunNotFound as error:
        return {"run_id": folder.run_id, "status": RunStatus.UNREADABLE, "reason": str(error)}


def status_now(folder: RunFolder, record: dict[str, Any]) -> str:
    """Return the recorded status, or ``killed`` if a run recorded as running has no live process.

    Where a shared run is, its status is known.
    """
    status = str(record.get("status", ""))
    if SHARED in record or status != RunStatus.RUNNING or is_alive(folder):
        return status
    return RunStatus.KILLED


def totals_now(folder: RunFolder, record: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded totals; for a session without an end, those of the run's turns instead of older ones.

    Empty for a run that ended before it had any.
    """
    totals = record.get("totals") or {}
    is_counted = record.get("exit_code") is not None or SHARED in record
    return totals if is_counted else totals_of(folder, totals.get("seconds", 0.0))


def open_questions(folder: RunFolder, record: dict[str, Any]) -> list[Question]:
    """Return what the run asks a person now; empty when it is over, or nobody will continue it with an answer.

    What is out of time is settled.
    """
    is_withdrawn = SHARED in record and record["status"] == RunStatus.INTERRUPTED
    if has_reached_end(record) or is_withdrawn:
        return []
    questions = Questions(folder.path)
    with suppress(StorageError):  # such as of somebody else's run, which can only be looked at
        questions.settle_overdue()
    return questions.pending()


@dataclass(frozen=True)
class RecordedRun:
    """A run and its `read_record`; ``version``: modification time in ns and size of its ``run.json``."""

    folder: RunFolder
    record: dict[str, Any]
    version: tuple[int, int]


class Records:
    """The runs below one folder. Each record is kept until its ``run.json`` changes; threads may share it."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._known: dict[str, RecordedRun] = {}

    def look(self) -> list[RecordedRun]:
        """Return the current runs, oldest first."""
        runs = sorted(self._read(), key=lambda run: (str(run.record.get("started_at", "")), run.folder.run_id))
        self._known = {run.folder.run_id: run for run in runs}
        return runs

    def _read(self) -> Iterator[RecordedRun]:
        known = self._known
        for name in _folders(self._runs_dir):
            folder = RunFolder(self._runs_dir / name)
            try:
                stat = folder.record_path.stat()
            except OSError:
                continue  # not a run, or removed meanwhile
            version = (stat.st_mtime_ns, stat.st_size)
            if name in known and known[name].version == version:
                yield known[name]
            else:
                yield RecordedRun(folder, read_record(folder), version)


def _folders(runs_dir: Path) -> list[str]:
    try:
        with os.scandir(runs_dir) as entries:
            return [each.name for each in entries if each.is_dir(follow_symlinks=False) and RUN_ID.fullmatch(each.name)]
    except OSError:
        return []
