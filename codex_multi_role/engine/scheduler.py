"""Do pieces of work side by side: a few at a time, each after those it needs, with the results in their order."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Generic, TypeVar

from codex_multi_role.engine.journal_slots import RunHalted
from codex_multi_role.errors import ReviewWaiting

Result = TypeVar("Result")
Works = Sequence[Callable[[], Result]]


@dataclass
class Scheduler(Generic[Result]):
    """Does pieces of work, once: ``concurrency`` at a time, on threads called ``name`` that know the workflow.

    ``needs``: for each piece, the indices of those it starts after. ``is_last``: whether a result ends the work. After
    such a result, or an exception, nothing further starts; what runs finishes, because its turns are paid for.
    A piece that waits for a person does not hold up others, so that all questions can be answered at once.
    """

    name: str
    concurrency: int
    needs: Sequence[Sequence[int]] = ()
    is_last: Callable[[Result], bool] = lambda _: False
    _closed: bool = field(default=False, init=False)

    def run(self, works: Works[Result]) -> tuple[list[Result], BaseException | None]:
        """Returns the available results, and the first exception, both in the order of ``works``.

        The exception of a piece that waits for a person counts only if there is no other one.
        """
        if not works:
            return [], None
        with ThreadPoolExecutor(min(self.concurrency, len(works)), thread_name_prefix=self.name) as pool:
            futures = self._submit_all(works, pool)
        in_order = [futures[index] for index in sorted(futures)]
        errors = [error for future in in_order if (error := future.exception()) is not None]
        results = [each.result() for each in in_order if each.exception() is None]
        return results, min(errors, key=_is_waiting_for_person, default=None)

    def _submit_all(self, works: Works[Result], pool: ThreadPoolExecutor) -> dict[int, Future[Result]]:
        """Submit each piece when it may start. Decided on one thread, so that a replay submits the same ones."""
        order = TopologicalSorter({index: self.needs[index] if self.needs else () for index in range(len(works))})
        order.prepare()
        futures: dict[int, Future[Result]] = {}
        running: dict[Future[Result], int] = {}
        ready: deque[int] = deque()
        while order.is_active():
            ready += order.get_ready()
            while ready and not self._closed and len(running) < self.concurrency:
                index = ready.popleft()
                futures[index] = pool.submit(contextvars.copy_context().run, works[index])
                running[futures[index]] = index
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                if self._succeeded(future):
                    order.done(running[future])
                del running[future]
        return futures

    def _succeeded(self, future: Future[Result]) -> bool:
        if (error := future.exception()) is not None:
            self._closed |= not _is_waiting_for_person(error)
            return False
        self._closed |= self.is_last(future.result())
        return True


def _is_waiting_for_person(error: BaseException) -> bool:
    return isinstance(error, RunHalted) and error.ending.exit_code == ReviewWaiting.exit_code
