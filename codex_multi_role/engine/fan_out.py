"""Do the same work for many items, a few at a time, with the results in item order."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import TypeVar

from codex_multi_role.engine.halt import RunHalted
from codex_multi_role.errors import ReviewWaiting

Item = TypeVar("Item")
Result = TypeVar("Result")


def fan_out(
    items: Sequence[Item], concurrency: int, work: Callable[[Item], Result], needs: Sequence[Sequence[int]] = ()
) -> tuple[list[Result], BaseException | None]:
    """``work(item)`` for every item, ``concurrency`` at a time, each after the items that it ``needs``, by index.

    Each call runs on a thread that knows the workflow. After one raises, no further item starts; running ones finish,
    because their turns are paid for. Returns the available results, and the first exception in item order. An item that
    waits for a person does not hold up others, so that all questions can be answered at once. Its exception counts only
    if there is no other one, and items that need it do not start.
    """
    if not items:
        return [], None
    order = TopologicalSorter({index: needs[index] if needs else () for index in range(len(items))})
    order.prepare()
    failed = threading.Event()

    def one(item: Item) -> Result | None:
        if failed.is_set():
            return None
        try:
            return work(item)
        except BaseException as error:
            if not _waits_for_person(error):
                failed.set()
            raise

    futures: dict[int, Future[Result | None]] = {}
    with ThreadPoolExecutor(min(concurrency, len(items)), thread_name_prefix="item") as pool:
        running: dict[Future[Result | None], int] = {}
        while order.is_active():
            for index in () if failed.is_set() else order.get_ready():
                futures[index] = pool.submit(contextvars.copy_context().run, one, items[index])
                running[futures[index]] = index
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index = running.pop(future)
                if future.exception() is None:
                    order.done(index)
    in_order = [futures[index] for index in sorted(futures)]
    errors = [error for future in in_order if (error := future.exception()) is not None]
    done = [future.result() for future in in_order if future.exception() is None]
    first = min(errors, key=_waits_for_person, default=None)
    return [result for result in done if result is not None], first


def _waits_for_person(error: BaseException) -> bool:
    return isinstance(error, RunHalted) and error.ending.exit_code == ReviewWaiting.exit_code
