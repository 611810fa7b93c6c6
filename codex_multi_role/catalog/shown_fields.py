"""What the engine says of a step and of its items beside their results. No answer replaces a field of these names."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

StepStatus = Literal["not_started", "running", "done", "failed"]
ItemStatus = Literal["done", "failed", "skipped"]


class OfStep(TypedDict):
    """``verdict``: that of the result or, without one, its ``status``; absent if the result has its own."""

    visits: int
    status: StepStatus
    error: str
    verdict: NotRequired[str]


class OfItem(TypedDict):
    """``bad``: whether its result is. ``role``: the one that was chosen for it, if one was."""

    index: int
    status: ItemStatus
    error: str
    bad: NotRequired[bool]
    role: NotRequired[str]


OF_STEP, OF_ITEM = frozenset(OfStep.__annotations__), frozenset(OfItem.__annotations__)
OF_COPY = ("copy", "merge")
"""What a result has of a step that works in a copy of the workspace."""
