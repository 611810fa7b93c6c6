"""Work that is cut short: by a kill between any two of its steps, or by a limit of the system."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAME_CHANGES = ("mkdir", "replace", "symlink", "unlink", "rmdir")
MOST_STEPS = 400


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_before_step(number: int) -> Iterator[None]:
    """End the work with `Killed` before its ``number``-th call of git, or change of a name on disk."""
    steps = 0

    def dies(*_: Any) -> bool:
        nonlocal steps
        steps += 1
        return steps == number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", _mortal(subprocess.Popen, dies))
        for name in NAME_CHANGES:
            patch.setattr(os, name, _mortal(getattr(os, name), dies))
        yield


@contextmanager
def killed_at(target: Path) -> Iterator[None]:
    """End the work before a file gets the name of ``target``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", _mortal(os.replace, lambda _, name, *__: str(name) == target.name))
        yield


def _mortal(function: Callable[..., Any], dies: Callable[..., bool]) -> Callable[..., Any]:
    def step(*arguments: Any, **keywords: Any) -> Any:
        if dies(*arguments):
            raise Killed
        return function(*arguments, **keywords)

    return step


def killed_until_it_is_done(work: Callable[[], object]) -> int:
    """Do ``work``, killed at an ever later step, until it comes through; returns the number of kills."""
    return until_it_is_done(lambda number: _killed(work, number))


def until_it_is_done(work: Callable[[int], object]) -> int:
    """Call ``work`` with 1, 2, 3 … until it is not killed any more; returns the number of kills."""
    for number in range(1, MOST_STEPS):
        try:
            work(number)
        except Killed:
            continue
        return number - 1
    raise AssertionError("it never comes to an end")


def _killed(work: Callable[[], object], number: int) -> None:
    with killed_before_step(number):
        work()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Within the block this process cannot make a file larger than ``size`` bytes: writing on fails with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
