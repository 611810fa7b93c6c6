from __future__ import annotations

from tests.support.forks import built, parent

__all__ = ["built", "parent"]
