"""Parameters of which some are tried by default, the others in the long run (``python -m pytest -m long``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def by_default(now: Collection[object], values: Iterable[Any]) -> list[Any]:
    """``values``; those that are not in ``now`` are only tried in the long run."""
    return [value if value in now else pytest.param(value, marks=pytest.mark.long) for value in values]
