from __future__ import annotations

from tests.support.checks import codex_sandbox, make_context, others

__all__ = ["codex_sandbox", "make_context", "others"]
