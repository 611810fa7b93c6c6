"""The first turns of a new run, taken while its journal is being opened.

A turn is written to its folder before its prompt is sent, and with its result before anything uses that. After a kill,
a resumed run finds it by its journal position, as it does whenever the journal does not know a finished turn yet. All
other work needs the journal: files, tests and checks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import codex_multi_role.steps.earlier_turns  # noqa: F401 - each turn's end needs it; now the processes are starting
from codex_multi_role.engine.askers import Asker, Scope
from codex_multi_role.engine.flow_walk import CallableFlows, FlowWalk, LastAnnounced
from codex_multi_role.engine.journal_slots import JournalSlot, JournalSlots, RunHalted, refuse_when_stopping
from codex_multi_role.engine.leases import Instances
from codex_multi_role.errors import RunInterrupted, ending_for
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import RunResources

if TYPE_CHECKING:
    from codex_multi_role.engine.dbos_library import StepOptions

ENDING_SECONDS = 20.0


class HeadStart:
    """Walks the flow until work other than a turn is due, or the run's own walk begins, which records the results.

    ``announced`` is shared with that walk, so that it does not publish the same visit again.
    """

    def __init__(self) -> None:
        self.announced = LastAnnounced()
        self._lock = threading.Lock()
        self._started: dict[int, Future[Json]] = {}
        self._is_over = False

    @contextmanager
    def meanwhile(self, flows: CallableFlows, state: FlowState, run: RunResources) -> Iterator[None]:
        """Take the turns while the caller works. If the caller fails, the turns are interrupted.

        ``state``: that of the run's start, which is changed.
        """
        # Not a daemon: the threads of its pools would be daemons too. Python's end waits for those all the same, but a
        # program that looks for what delays its end does not find them.
        thread = threading.Thread(target=self._walk, args=(flows, state, run), name="head-start")
        thread.start()
        try:
            yield
        except BaseException:
            run.progress.stopping.set()
            run.services.fleet.cancel()
            thread.join(ENDING_SECONDS)
            raise

    def _walk(self, flows: CallableFlows, state: FlowState, run: RunResources) -> None:
        slots = (_FirstSlot(number, self._take) for number in count(1))
        ids = JournalSlots(partial(refuse_when_stopping, run), slots, is_open=False)
        scope = Scope(run, ids, Asker(run, Instances()), state)
        with suppress(Exception, RunHalted):  # the run's own walk meets the same error
            FlowWalk(flows, scope, announced=self.announced).walk()

    def _take(self, place: int, work: Callable[[], Json]) -> Json:
        """Do the work, unless the run's own walk has started: then this one ends."""
        with self._lock:
            if self._is_over:
                raise RunHalted(ending_for(RunInterrupted()))
            future = self._started.setdefault(place, Future())
        try:
            result = work()
        except BaseException as error:  # raised where the run's own walk waits for it, too
            future.set_exception(error)
            raise
        future.set_result(result)
        return result

    def taken_over(self, slots: Iterator[JournalSlot]) -> Iterator[JournalSlot]:
        """The slots of the run's own walk. Those whose work has started here only record its result."""
        with self._lock:
            self._is_over = True
        return (
            _StartedSlot(slot, self._started[slot.step_id]) if slot.step_id in self._started else slot for slot in slots
        )


class _FirstSlot:
    """A slot of a journal that is not open yet."""

    def __init__(self, number: int, take: Callable[[int, Callable[[], Json]], Json]) -> None:
        self._number, self._take = number, take

    @property
    def step_id(self) -> int:
        return self._number

    def run(self, _: StepOptions | None, func: Callable[[], Json], /) -> Json:
        return self._take(self._number, func)


class _StartedSlot:
    """A slot of the journal whose work has started before the journal was open."""

    def __init__(self, slot: JournalSlot, started: Future[Json]) -> None:
        self._slot, self._started = slot, started

    @property
    def step_id(self) -> int:
        return self._slot.step_id

    def run(self, options: StepOptions | None, _: Callable[[], Json], /) -> Json:
        return self._slot.run(options, self._started.result)
