"""Doing the same work for many items, a few at a time, with the results in the items' order."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import CycleError, TopologicalSorter
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


def needs_of(step: StepSpec, items: Sequence[Any], context: Mapping[str, Any]) -> list[list[int]]:
    """For each item, which others it waits for, by their indices.

    Raises `DefinitionError` for items without an ``id`` of their own, an id that none has, and a circle.
    """
    if step.needs is None:
        return [[] for _ in items]
    where = f"step {step.id}: needs"
    ids = [str(item.get("id")) if isinstance(item, Mapping) and "id" in item else "" for item in items]
    if "" in ids or len(set(ids)) < len(ids):
        raise DefinitionError(f"{where}: every item must have an id of its own, they have: {', '.join(ids)}")
    needs = []
    for index, item in enumerate(items):
        named = render(step.needs, {**context, step.as_: item, "item": item, "index": index}, where)
        if not isinstance(named, list) or not {*map(str, named)} <= {*ids}:
            raise DefinitionError(f"{where}: {ids[index]} needs {named!r}: must be a list of ids of the items")
        needs.append([ids.index(str(name)) for name in named])
    try:
        TopologicalSorter(dict(enumerate(needs))).prepare()
    except CycleError as error:
        circle = " -> ".join(ids[index] for index in reversed(error.args[1]))
        raise DefinitionError(f"{where}: items wait for each other: {circle}") from error
    return needs


def fan_out(
    items: Sequence[Item], concurrency: int, work: Callable[[Item], Result], needs: Sequence[Sequence[int]] = ()
) -> tuple[list[Result], BaseException | None]:
    """``work(item)`` for every item, ``concurrency`` at a time, each once those are done that it ``needs``, by index.

    Each runs on a thread that knows the workflow. Once one raises, no further item begins; those under way finish, for
    their turns are paid for. Returns the results there are, and what the first that raised did raise, both in the
    items' order. An item that waits for a person holds up no other, as all that ask are to be answered at once, and
    what it raises counts only where no other did; those that need it do not begin.
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
        under_way: dict[Future[Result | None], int] = {}
        while order.is_active():
            for index in () if failed.is_set() else order.get_ready():
                futures[index] = pool.submit(contextvars.copy_context().run, one, items[index])
                under_way[futures[index]] = index
            if not under_way:
                break
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                index = under_way.pop(future)
                if future.exception() is None:
                    order.done(index)
    in_order = [futures[index] for index in sorted(futures)]
    errors = [error for future in in_order if (error := future.exception()) is not None]
    done = [future.result() for future in in_order if future.exception() is None]
    first = min(errors, key=_waits_for_person, default=None)
    return [result for result in done if result is not None], first


def _waits_for_person(error: BaseException) -> bool:
    return isinstance(error, RunHalted) and error.ending.exit_code == ReviewWaiting.exit_code
