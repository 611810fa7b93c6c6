from __future__ import annotations

import pytest

from tests.support.forks import built, parent
from tests.support.plan_solve import solved_chain, solved_once

__all__ = ["built", "parent", "solved_chain", "solved_once"]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries of a prompt, and before a turn that does not end is given up."""
    monkeypatch.setattr("codex_multi_role.steps.recovery.FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("codex_multi_role.codex.running_turn.INTERRUPT_SECONDS", 1.0)
