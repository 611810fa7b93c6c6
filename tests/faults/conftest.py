from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.screen import Screen


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Screen:
    """Without the pauses between tries, and with little patience for a process that does not end its turn."""
    monkeypatch.setattr("codex_multi_role.steps.remedies.FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("codex_multi_role.codex.client.INTERRUPT_SECONDS", 0.5)
    return Screen(tmp_path, monkeypatch, capsys)
