"""The places of recorded work in the journal, drawn in one order by the thread that walks the flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from codex_multi_role.ending import ending_for
from codex_multi_role.engine.halt import RunHalted
from codex_multi_role.engine.library import DBOS, StepOptions
from codex_multi_role.errors import StorageError
from codex_multi_role.steps import Json, Work

RESUME = "Free some space or mend the database, then `codex-multi-role resume` the run."


def in_words(error: Exception) -> str:
    """What the database itself says is wrong, without what SQLAlchemy writes around it."""
    return str(getattr(error, "orig", None) or error)


class Place(Protocol):
    """A place in the journal: DBOS's ``StepReservation``, or what stands in for one where nothing is to be done."""

    @property
    def step_id(self) -> int: ...

    def run(self, dbos_step_options: StepOptions | None, func: Callable[[], Json], /) -> Json: ...


def _drawn() -> Iterator[Place]:
    while True:
        yield DBOS.reserve_step()


class StepIds:
    """Draws step ids. Work that runs beside other work gets a row of its own, drawn before any of it begins.

    So concurrent asks keep their places in the journal however fast each is, and a replay finds them there; child
    workflows, with their polling, are not needed.
    """

    def __init__(self, before: Callable[[], None], source: Iterator[Place] | None = None) -> None:
        self._before = before
        self._source = source or _drawn()

    def row(self, size: int) -> StepIds:
        """The next ``size`` ids."""
        return StepIds(self._before, iter(list(islice(self._source, size))))

    def mark(self) -> int:
        """Draw an id that nothing is recorded under: the place in the journal where a step's visit begins."""
        return next(self._source).step_id

    def announcing(self, before: Callable[[], None]) -> StepIds:
        """The same ids; ``before`` is called when work is really done under one of them, not on a replay."""

        def both() -> None:
            self._before()
            before()

        return StepIds(both, self._source)

    def record(self, name: str, work: Work) -> Json:
        """Run ``work`` once and for all (the `Recorder` of the steps); what it raises halts the run, unrecorded."""

        place = next(self._source, None)
        if place is None:
            message = f"no room is left in the journal for {name}: this item was to record less when it began"
            raise RunHalted(ending_for(StorageError(message, "Start another run; this one cannot grow further here.")))
        number = place.step_id

        def guarded() -> Json:
            try:
                self._before()
                return work(number)
            except Exception as error:
                raise RunHalted(ending_for(error)) from error

        try:
            return place.run({"name": name}, guarded)
        except Exception as error:  # the work raises no Exception: this is the journal's
            raise RunHalted(
                ending_for(StorageError(f"the journal failed at {name}: {in_words(error)}", RESUME))
            ) from error
