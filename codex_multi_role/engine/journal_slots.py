"""What a journal holds, and slots for recorded work in it, drawn in a fixed order by the thread that walks the flow.

A run that halts leaves no trace in the journal, so that it can be resumed from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Protocol

from codex_multi_role.errors import (
    TOO_MANY_FILES,
    CodexMultiRoleError,
    Ending,
    RunInterrupted,
    RunPaused,
    StorageError,
    ending_for,
)
from codex_multi_role.host.processes import has_free_descriptor
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import RunResources, Work


def refuse_when_stopping(run: RunResources) -> None:
    """Raise `RunInterrupted`, or `RunPaused`, if no more work may start."""
    if run.progress.stopping.is_set() or run.progress.draining.is_set():
        raise RunInterrupted
    if run.progress.pausing.is_set():
        raise RunPaused("the run was paused")


class RunHalted(BaseException):
    """Leaves the workflow without being recorded.

    The durable engine permanently records what a step or workflow returns and every ``Exception`` it raises, but no
    ``BaseException``. The journal then looks as it does after ``kill -9``. One way to resume covers a crash, an
    interruption, a failed role, and a flow that ended, whose next attempt may have other options.
    """

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.outcome)
        self.ending = ending


class NothingRecorded(RunHalted):
    """Looks at a slot: what it would record does not exist yet."""

    def __init__(self) -> None:
        super().__init__(ending_for(RunInterrupted()))


CANCELLED = "item cancelled"
"""The key of what is recorded instead of the work of a cancelled item."""
FAILED = "step failed"
"""The key of what is recorded instead of the work of a step whose caller tolerates that it failed: its `Ending`."""


class ItemCancelled(Exception):
    """Somebody cancelled the item. Its unit ends here; the run continues."""

    def __init__(self, unit: str, reason: str) -> None:
        super().__init__(reason)
        self.unit = unit
        self.reason = reason


class JournalSlot(Protocol):
    """One position of the journal. ``step_id``: its number, from 1."""

    @property
    def step_id(self) -> int: ...

    def find(self, name: str, /) -> Json | None:
        """What is recorded here under ``name``. `NothingRecorded` if nothing is, and nothing may be done either."""
        ...

    def add(self, name: str, result: Json, /) -> Json:
        """Record a result where nothing is recorded; returns it as every replay finds it."""
        ...


@dataclass(frozen=True)
class JournalSlots:
    """Draws step IDs. Concurrent work gets its own range of IDs, drawn before any of the work starts.

    Concurrent asks therefore keep their positions in the journal however fast each is, and a replay finds them there.
    Child workflows, with their polling, are not needed. ``before`` is called before work is really done under one of
    the IDs, but not on a replay; ``save`` after it; ``cancelled`` returns why the work of an item must not be done.
    ``keeps_failures``: a failure does not end the run, as a caller tolerates it, and so it is recorded.
    """

    before: Callable[[], None]
    source: Iterator[JournalSlot]
    cancelled: Callable[[], ItemCancelled | None] = lambda: None
    save: Callable[[], object] = lambda: None
    keeps_failures: bool = False

    def reserve(self, size: int) -> JournalSlots:
        """Reserve the next ``size`` IDs."""
        return replace(self, source=iter(list(islice(self.source, size))))

    def checkpoint(self) -> int:
        """Draw an ID under which nothing is recorded: the journal position where a step's visit begins."""
        return next(self.source).step_id

    def decision(self, name: str) -> Decision:
        """Draw the slot of a decision, before the work that leads to it. It can be recorded while that stops."""
        return Decision(replace(self, source=iter(()), before=lambda: None), next(self.source), name)

    def with_hook(self, before: Callable[[], None]) -> JournalSlots:
        """The same IDs; ``before`` is called as well."""

        def both() -> None:
            self.before()
            before()

        return replace(self, before=both)

    def cancellable(self, cancelled: Callable[[], ItemCancelled | None]) -> JournalSlots:
        """The same IDs, for the work of an item that may be ``cancelled``."""
        return replace(self, cancelled=lambda: self.cancelled() or cancelled())

    @contextmanager
    def record(self, name: str) -> Iterator[Work]:
        """Record the work of the block once (the `Recorder` of the steps). What it raises halts the run.

        That is recorded only if these slots keep it. Raises `ItemCancelled` if a cancellation was recorded. What led to
        a result is saved before it is recorded: the journal must not know more than another machine can get.
        """
        place = next(self.source, None)
        if place is None:
            message = f"the journal has no space reserved for {name}: fewer steps were planned when this item started"
            raise RunHalted(
                ending_for(StorageError(message, "Start another run; this one cannot be extended at this point."))
            )
        if (recorded := found(place, name)) is not None:
            yield Work(place.step_id, is_due=False, result=recorded)
            return
        work, failed = Work(place.step_id), None
        try:
            cancelled = self.cancelled()
            if cancelled is None:
                self.before()
                yield work
        except RunInterrupted as error:
            cancelled = self.cancelled()
            if cancelled is None:
                raise RunHalted(ending_for(error)) from error
        except Exception as error:
            failed = ending_for(error)
            if not (self.keeps_failures and failed.is_of_step):
                raise RunHalted(failed) from error
        if cancelled is not None:
            work.result = {CANCELLED: {"unit": cancelled.unit, "reason": cancelled.reason}}
        elif failed is not None:
            work.result = {FAILED: asdict(failed)}
        try:
            self.save()
        except Exception as error:
            raise RunHalted(ending_for(error)) from error
        with _halting(name):
            work.result = place.add(name, work.result)
        _require_done(work.result)


def found(place: JournalSlot, name: str) -> Json | None:
    """What is recorded at the ``place``. Raises `ItemCancelled` or `RunHalted` if that is how it ended."""
    with _halting(name):
        recorded = place.find(name)
    if recorded is not None:
        _require_done(recorded)
    return recorded


def _require_done(recorded: Json) -> None:
    if CANCELLED in recorded:
        raise ItemCancelled(**recorded[CANCELLED])
    if FAILED in recorded:
        raise RunHalted(Ending.of(recorded[FAILED]))


@contextmanager
def _halting(name: str) -> Iterator[None]:
    """A failure of the journal in the block halts the run."""
    try:
        yield
    except CodexMultiRoleError as error:
        raise RunHalted(ending_for(error)) from error
    except RunHalted:
        raise
    except BaseException as error:  # DBOS has exceptions that are no `Exception`
        raise RunHalted(ending_for(journal_error(f"the journal failed at {name}", error))) from error


@dataclass(frozen=True)
class Decision:
    """What is decided while other work is running, recorded once at a ``place`` that was reserved before."""

    slots: JournalSlots
    place: JournalSlot
    name: str

    def find(self) -> Json | None:
        """What was decided, in this session or an earlier one."""
        try:
            return found(self.place, self.name)
        except NothingRecorded:
            return None

    def record(self, decided: Json) -> None:
        with replace(self.slots, source=iter([self.place])).record(self.name) as work:
            work.result = decided


JOURNAL_VERSION = "2"
"""Incremented when recorded steps change their order or meaning; a journal of another version cannot be resumed."""


@dataclass(frozen=True)
class RecordedStep:
    """A recorded step: what was done, and its result."""

    name: str
    output: Json


Past = Mapping[int, RecordedStep]
"""The recorded steps of a run by their positions."""


def require_version(journal: object, version: str | None, rows: str = "") -> None:
    """Raise `StorageError` if this program cannot read a journal of that ``version``, which ends with ``rows``."""
    if version != (known := JOURNAL_VERSION + rows):
        raise StorageError(
            f"the journal {journal} has version {version or 'unknown'}, this program writes {known}",
            "Use the version of codex-multi-role that `run.json` names.",
        )


RESUME = "Then resume the run."
TRY_AGAIN = "Then try again."
GENERAL = "Free some space or fix the database."
UNOPENED = "unable to open database file"
IF_WRITABLE = "If its folder is writable, too many files may be open: raise the limit (`ulimit -n`)."
"""A missing descriptor may be free again when we look for one."""


def journal_error(happened: str, error: object, then: str = RESUME, *known: str) -> StorageError:
    """A failure of the journal itself; its hint is the first that is ``known``, and ends with ``then``."""
    problem = " ".join(str(error).partition("\n")[0].split())
    hint = IF_WRITABLE if UNOPENED in problem else next(iter(known), GENERAL)
    return StorageError(f"{happened}: {problem}", f"{hint} {then}" if has_free_descriptor() else TOO_MANY_FILES)
