from __future__ import annotations

from tests.support.codex import harness

__all__ = ["harness"]
