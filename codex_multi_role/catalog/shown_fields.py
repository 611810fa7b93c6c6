"""What the engine says of a step and of its items beside their results. No answer replaces a field of these names."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class OfStep(TypedDict):
    """``verdict``: the result's own, otherwise its ``status``."""

    visits: int
    status: Literal["not_started", "running", "done", "failed"]
    error: str
    verdict: NotRequired[str]


class OfItem(TypedDict):
    """``bad``: whether its result is. ``role``: the one that was chosen for it."""

    index: int
    status: Literal["done", "failed", "skipped"]
    error: str
    bad: bool
    role: NotRequired[str]


OF_COPY = ("copy", "merge")
"""What a result has of a step that works in a copy of the workspace."""
