"""Do pieces of work side by side: a few at a time, each after those it needs, with the results in their order."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Generic, TypeVar

from codex_multi_role.engine.journal_slots import RunHalted
from codex_multi_role.errors import ReviewWaiting, RunStatus

Result = TypeVar("Result")
Works = Sequence[Callable[[], Result]]


@dataclass
class Scheduler(Generic[Result]):
    """Does pieces of work, once: ``concurrency`` at a time, on threads called ``name`` that know the workflow.

    ``needs``: for each piece, the indices of those it starts after. ``is_last``: whether a result ends the work. After
    such a result, or an exception, nothing further starts; what runs finishes, because its turns are paid for.
    A piece that waits for a person does not hold up others, so that all questions can be answered at once; nor does one
    that was stopped. With ``cancel_rest``, a failure is final: then that is called, and the pieces that have not ended
    run as well, so that a replay finds each of them recorded, as cancelled or, if this is one, with its result.
    """

    name: str
    concurrency: int
    needs: Sequence[Sequence[int]] = ()
    is_last: Callable[[Result], bool] = lambda _: False
    cancel_rest: Callable[[], object] | None = None
    _closed: bool = field(default=False, init=False)
    _settled: bool = field(default=False, init=False)

    def run(self, works: Works[Result]) -> tuple[list[Result], BaseException | None]:
        """Returns the available results, and the first exception, both in the order of ``works``.

        The exception of a piece that waits for a person counts only if there is no other one. With ``cancel_rest``,
        what stops the run counts before a failure, which a caller tolerates.
        """
        if not works:
            return [], None
        # waits: for steps, ended by their deadlines
        with ThreadPoolExecutor(min(self.concurrency, len(works)), thread_name_prefix=self.name) as pool:
            futures = self._submit_all(works, pool)
        errors = _errors(futures)
        # waits: for nothing: they are done
        results = [futures[index].result() for index in sorted(futures.keys() - errors.keys())]
        return results, min(errors.values(), key=self._rank, default=None)

    def _rank(self, error: BaseException) -> int:
        is_tolerated = self.cancel_rest is not None and _is_failure(error)
        return 2 if _is_waiting_for_person(error) else int(is_tolerated)

    def _submit_all(self, works: Works[Result], pool: ThreadPoolExecutor) -> dict[int, Future[Result]]:
        """Submit each piece when it may start. Decided on one thread, so that a replay submits the same ones."""
        order = TopologicalSorter({index: self.needs[index] if self.needs else () for index in range(len(works))})
        order.prepare()
        futures: dict[int, Future[Result]] = {}
        running: dict[Future[Result], int] = {}
        ready: deque[int] = deque()
        while order.is_active():  # waits: for steps, ended by their deadlines
            ready += order.get_ready()
            while ready and not self._closed and len(running) < self.concurrency:
                index = ready.popleft()
                futures[index] = pool.submit(contextvars.copy_context().run, works[index])
                running[futures[index]] = index
            if not running:
                if self._settled or self.cancel_rest is None or not _has_failed_for_good(errors := _errors(futures)):
                    break
                self.cancel_rest()
                self._settled, self._closed = True, False
                ready += [index for index, error in errors.items() if _is_waiting_for_person(error)]
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:  # waits: for steps, ended by their deadlines
                if self._succeeded(future):
                    order.done(running[future])
                del running[future]
        return futures

    def _succeeded(self, future: Future[Result]) -> bool:
        if (error := future.exception()) is not None:  # waits: for nothing: it is done
            is_stopped = isinstance(error, RunHalted) and error.ending.status == RunStatus.INTERRUPTED
            self._closed |= not (self._settled or is_stopped or _is_waiting_for_person(error))  # these let others start
            return False
        self._closed |= not self._settled and self.is_last(future.result())  # waits: for nothing: it is done
        return True


def _errors(futures: Mapping[int, Future[Result]]) -> dict[int, BaseException]:
    """The exceptions of the pieces, in their order."""
    # waits: for nothing: they are done
    return {index: error for index in sorted(futures) if (error := futures[index].exception()) is not None}


def _has_failed_for_good(errors: Mapping[int, BaseException]) -> bool:
    """Whether a step failed, and no piece was stopped by anything else: only such a one is worked on again."""
    others = [each for each in errors.values() if not _is_waiting_for_person(each)]
    return bool(others) and all(map(_is_failure, others))


def _is_failure(error: BaseException) -> bool:
    return isinstance(error, RunHalted) and error.ending.is_of_step


def _is_waiting_for_person(error: BaseException) -> bool:
    return isinstance(error, RunHalted) and error.ending.exit_code == ReviewWaiting.exit_code
