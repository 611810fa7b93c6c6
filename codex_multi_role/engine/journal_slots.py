"""The places of recorded work in the journal, drawn in one order by the thread that walks the flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from codex_multi_role.ending import ending_for
from codex_multi_role.engine.dbos_library import DBOS, DBOSBaseException, StepOptions
from codex_multi_role.engine.halt import RunHalted
from codex_multi_role.errors import TOO_MANY_FILES, RunInterrupted, StorageError
from codex_multi_role.processes import has_free_descriptor
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import Work

RESUME = "Free some space or fix the database, then `codex-multi-role resume` the run."
CANCELLED = "item cancelled"
"""What is recorded in place of the work of an item that was cancelled."""


class ItemCancelled(Exception):
    """Somebody cancelled the item; its unit ends here, the run goes on."""

    def __init__(self, unit: str, reason: str) -> None:
        super().__init__(reason)
        self.unit = unit
        self.reason = reason


def in_words(error: BaseException) -> str:
    """What the database itself says is wrong, without what SQLAlchemy writes around it."""
    return str(getattr(error, "orig", None) or error)


def journal_error(happened: str, error: Exception | DBOSBaseException) -> StorageError:
    """A failure of the journal itself, with what the user can do about it."""
    return StorageError(f"{happened}: {in_words(error)}", RESUME if has_free_descriptor() else TOO_MANY_FILES)


class JournalSlot(Protocol):
    """A place in the journal: DBOS's ``StepReservation``, or what stands in for one where nothing is to be done."""

    @property
    def step_id(self) -> int: ...

    def run(self, dbos_step_options: StepOptions | None, func: Callable[[], Json], /) -> Json: ...


def _drawn() -> Iterator[JournalSlot]:
    while True:
        yield DBOS.reserve_step()


class JournalSlots:
    """Draws step ids. Work that runs beside other work gets a row of its own, drawn before any of it begins.

    So concurrent asks keep their places in the journal however fast each is, and a replay finds them there; child
    workflows, with their polling, are not needed.
    """

    def __init__(
        self,
        before: Callable[[], None],
        source: Iterator[JournalSlot] | None = None,
        cancelled: Callable[[], ItemCancelled | None] = lambda: None,
    ) -> None:
        self._before = before
        self._source = source or _drawn()
        self._cancelled = cancelled

    def reserve(self, size: int) -> JournalSlots:
        """The next ``size`` ids."""
        return JournalSlots(self._before, iter(list(islice(self._source, size))), self._cancelled)

    def checkpoint(self) -> int:
        """Draw an id that nothing is recorded under: the place in the journal where a step's visit begins."""
        return next(self._source).step_id

    def with_hook(self, before: Callable[[], None]) -> JournalSlots:
        """The same ids; ``before`` is called when work is really done under one of them, not on a replay."""

        def both() -> None:
            self._before()
            before()

        return JournalSlots(both, self._source, self._cancelled)

    def cancellable(self, cancelled: Callable[[], ItemCancelled | None]) -> JournalSlots:
        """The same ids, for the work of an item that may be ``cancelled``."""
        return JournalSlots(self._before, self._source, lambda: self._cancelled() or cancelled())

    def record(self, name: str, work: Work) -> Json:
        """Run ``work`` once and for all (the `Recorder` of the steps); what it raises halts the run, unrecorded.

        Raises `ItemCancelled` where that is what was recorded.
        """
        place = next(self._source, None)
        if place is None:
            message = f"no room is left in the journal for {name}: this item was to record less when it began"
            raise RunHalted(ending_for(StorageError(message, "Start another run; this one cannot grow further here.")))
        number = place.step_id

        def guarded() -> Json:
            try:
                return self._unless_cancelled(work, number)
            except Exception as error:
                raise RunHalted(ending_for(error)) from error

        try:
            recorded = place.run({"name": name}, guarded)
        except (Exception, DBOSBaseException) as error:  # the work raises neither: this is the journal's
            raise RunHalted(ending_for(journal_error(f"the journal failed at {name}", error))) from error
        if CANCELLED in recorded:
            raise ItemCancelled(**recorded[CANCELLED])
        return recorded

    def _unless_cancelled(self, work: Work, number: int) -> Json:
        """What ``work`` returns; work that is cancelled, before it begins or under way, is recorded as such."""
        if (cancelled := self._cancelled()) is None:
            try:
                self._before()
                return work(number)
            except RunInterrupted:
                if (cancelled := self._cancelled()) is None:
                    raise
        return {CANCELLED: {"unit": cancelled.unit, "reason": cancelled.reason}}
