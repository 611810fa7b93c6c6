"""The options of a run as keywords, for type checkers and editors.

Made by ``python -m tests.docs`` from the table of options in `run_options`; not edited by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict


class Added(Protocol):
    """`AddedOptions` of an extension."""

    def check(self, options: Any) -> None: ...  # noqa: ANN401


@dataclass(frozen=True)
class PlaybookAsk:
    """What a playbook that is a function is asked, and the names that the templates of any other one have.

    ``role`` is asked for the ``visit``-th time; ``repair``: the number of the repair turn, 0 for none; ``attempt``: how
    often the ``prompt`` was sent; ``unit``: the step's visit or the item that asks, empty in a team.
    """

    role: str
    visit: int
    repair: int
    attempt: int
    prompt: str
    unit: str
    tool_outputs: list[str]


PlaybookFunction = Callable[[PlaybookAsk], Mapping[str, Any] | str]
"""A playbook in Python: returns the answer, as a JSON object or as the whole text."""


class PlaceKeywords(TypedDict, total=False):
    """What `resume` may change of `RunPlace`."""

    roles: str | os.PathLike[str] | None
    workspace: str | os.PathLike[str]
    workspace_copy: list[str] | tuple[str, ...]
    workspace_setup: str | None


class AnswersKeywords(TypedDict, total=False):
    """What `resume` may change of `RunAnswers`."""

    model: str | None
    config: list[str] | tuple[str, ...]
    codex_bin: str | os.PathLike[str] | None
    repair_attempts: int
    playbook: str | os.PathLike[str] | Mapping[str, Any] | PlaybookFunction | None
    yes: bool


class LimitsKeywords(TypedDict, total=False):
    """What `resume` may change of `RunLimits`."""

    max_turns: int | None
    max_tokens: int | None
    max_cost: float | None
    prices: str | os.PathLike[str] | None
    max_seconds: float | None
    max_processes: int | None


class TestsKeywords(TypedDict, total=False):
    """What `resume` may change of `RunTests`."""

    run_tests: bool
    baseline: bool
    allow_removed_tests: list[str] | tuple[str, ...]
    pytest_cmd: str | None
    python: str | os.PathLike[str] | None
    test_sandbox: bool
    test_seconds: float


class ResumeKeywords(PlaceKeywords, AnswersKeywords, LimitsKeywords, TestsKeywords, total=False):
    """What `resume` may change."""

    inputs: Mapping[str, Any]
    cycles: int
    added: Sequence[Added]


class NewRunKeywords(ResumeKeywords, total=False):
    """What is given to a new run or a fork."""

    flow: str
    run_id: str | None


class ForkKeywords(NewRunKeywords, total=False):
    """What `fork` and `rerun` may change."""

    goal: str


class RunKeywords(NewRunKeywords, total=False):
    """The options of `run` beside the goal."""

    worktree: bool
    branch: str | None
    runs_dir: str | os.PathLike[str]


class OptionKeywords(RunKeywords, total=False):
    """All options."""

    goal: str
