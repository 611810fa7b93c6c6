"""Where a child is frozen: the N-th place of a kind.

``starts``  a program that the orchestrator starts, before it has done anything
``ends``    the same when it has done everything but end
``wire``    the Codex process of a message that has just passed, whichever way
``below``   a process that a child has started: Codex's sandbox and helpers, a tool command, the tests
"""

from __future__ import annotations

from tests.torture.points import Point

KINDS = ("starts", "ends", "wire", "below")


def parse(text: str) -> Point:
    """``KIND:N``. Raises ValueError."""
    return Point.parse(text, KINDS)
