"""How much memory a piece of work takes."""

from __future__ import annotations

import multiprocessing
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

LONGEST_SECONDS = 60


def most_allocated(work: Callable[..., object], *arguments: object) -> int:
    """Run ``work`` in a process of its own, and return the most bytes that Python's objects had at once.

    In the process of the tests, the figure would include what others leave to be done there.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        return processes.submit(_measured, work, arguments).result(LONGEST_SECONDS)


def _measured(work: Callable[..., object], arguments: tuple[object, ...]) -> int:
    tracemalloc.start()
    work(*arguments)
    return tracemalloc.get_traced_memory()[1]
