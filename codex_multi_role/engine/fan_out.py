"""Doing the same work for many items, a few at a time, with the results in the items' order."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from codex_multi_role.catalog import StepSpec, render
from codex_multi_role.engine.halt import RunHalted
from codex_multi_role.errors import DefinitionError, ReviewWaiting

Item = TypeVar("Item")
Result = TypeVar("Result")
MOST_AT_ONCE = 64


def items_of(step: StepSpec, context: Mapping[str, Any]) -> tuple[list[Any], int]:
    """The items of a fan-out and how many are done at once. Raises `DefinitionError` for a list that is none."""
    where = f"step {step.id}: "
    items = render(step.for_each, context, f"{where}for_each")
    if not isinstance(items, list):
        raise DefinitionError(f"{where}for_each: must be a list, not {type(items).__name__}")
    if step.max_items is not None and len(items) > step.max_items:
        raise DefinitionError(f"{where}for_each: {len(items)} items, max_items is {step.max_items}")
    concurrency = render(step.concurrency, context, f"{where}concurrency")
    if not isinstance(concurrency, int) or not 1 <= concurrency <= MOST_AT_ONCE:
        raise DefinitionError(f"{where}concurrency: must be a number from 1 to {MOST_AT_ONCE}, not {concurrency!r}")
    return items, concurrency


def fan_out(
    items: Sequence[Item], concurrency: int, work: Callable[[Item], Result]
) -> tuple[list[Result], BaseException | None]:
    """``work(item)`` for every item, ``concurrency`` at a time.

    Each runs on a thread that knows the workflow. Once one raises, no further item begins; those under way finish, for
    their turns are paid for. Returns the results there are, and what the first that raised did raise, both in the
    items' order. An item that waits for a person holds up no other, as all that ask are to be answered at once, and
    what it raises counts only where no other did.
    """
    if not items:
        return [], None
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

    with ThreadPoolExecutor(min(concurrency, len(items)), thread_name_prefix="item") as pool:
        futures: list[Future[Result | None]] = [
            pool.submit(contextvars.copy_context().run, one, item) for item in items
        ]
    errors = [error for future in futures if (error := future.exception()) is not None]
    done = [future.result() for future in futures if future.exception() is None]
    first = min(errors, key=_waits_for_person, default=None)
    return [result for result in done if result is not None], first


def _waits_for_person(error: BaseException) -> bool:
    return isinstance(error, RunHalted) and error.ending.exit_code == ReviewWaiting.exit_code
