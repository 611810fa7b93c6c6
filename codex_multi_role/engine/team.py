"""Roles that work at the same time: each starts after those it depends on have answered."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from graphlib import TopologicalSorter

from codex_multi_role.reading.json_types import Json
from codex_multi_role.steps import AskResult

Work = Callable[[str, dict[str, Json], Json | None], AskResult]
"""``work(role, handoffs it builds on, latest test result)``."""


class Team:
    """One round of asks over roles with dependencies, each on its own thread that knows the workflow.

    After a role says DONE or fails, no further role starts; running ones finish, because their turns are paid for.
    """

    def __init__(self, dependencies: Mapping[str, tuple[str, ...]], tests: Json | None) -> None:
        self._dependencies = dependencies
        self._tests = tests
        self._answers: dict[str, Future[AskResult | None]] = {role: Future() for role in dependencies}
        self._closed = threading.Event()

    def work(self, work: Work) -> list[AskResult]:
        """Wait for all roles; returns the available answers, dependencies first, with or without a failure."""
        order = list(TopologicalSorter(self._dependencies).static_order())
        with ThreadPoolExecutor(len(order), thread_name_prefix="role") as pool:
            for role in order:
                pool.submit(contextvars.copy_context().run, self._take_part, role, work)
        answered = [future.result() for role in order if (future := self._answers[role]).exception() is None]
        return [answer for answer in answered if answer is not None]

    def raise_failure(self) -> None:
        """Raise what the first failing role raised, if any did."""
        for future in self._answers.values():
            if (error := future.exception()) is not None:
                raise error

    def _take_part(self, role: str, work: Work) -> None:
        answer = self._answers[role]
        try:
            # No deadline here: every turn, repair and check has its own.
            for dependency in self._dependencies[role]:
                self._answers[dependency].result()
            answer.set_result(None if self._closed.is_set() else self._ask(role, work))
        except BaseException as error:
            self._closed.set()
            answer.set_exception(error)

    def _ask(self, role: str, work: Work) -> AskResult:
        answer = work(role, self._handoffs_for(role), self._tests)
        if answer.tests is not None:
            self._tests = answer.tests
        if answer.done:
            self._closed.set()
        return answer

    def _handoffs_for(self, role: str) -> dict[str, Json]:
        """What ``role`` builds on. A failed optional role is replaced by what it was to build on."""
        found: dict[str, Json] = {}
        for dependency in self._dependencies[role]:
            answer = self._answers[dependency].result()
            if answer is not None and answer.handoff is not None:
                found[dependency] = answer.handoff
            else:
                found |= self._handoffs_for(dependency)
        return found
