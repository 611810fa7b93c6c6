from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.screen import Screen
from tests.support.codex import Harness


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Screen:
    """Without the pauses between tries, and with little patience for a process that does not end its turn."""
    monkeypatch.setattr("codex_multi_role.steps.recovery.FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("codex_multi_role.codex.running_turn.INTERRUPT_SECONDS", 0.3)
    return Screen(tmp_path, monkeypatch, capsys)


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """As in `tests.codex`, with less patience for a turn that is to end."""
    monkeypatch.setattr("codex_multi_role.codex.running_turn.INTERRUPT_SECONDS", 0.3)
    with ExitStack() as stack:
        yield Harness(tmp_path, stack)
