"""What §17.5 asks for and no other test holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.codex.locator import find_codex
from tests.support.codex import ANSWER, Harness, take, wire
from tests.support.teams import Record

pytestmark = pytest.mark.real


def test_unknown_tool_is_refused_and_turn_continues(harness: Harness) -> None:
    call: Record = {"call": "no_such_tool", "arguments": {"a": 1}}
    outcome = take(harness.client([{"steps": [call, {"text": "{{ tool_outputs[0] }}"}]}]))
    assert outcome.status == "completed"
    assert "unsupported call: no_such_tool" in outcome.text


def test_stderr_is_kept_apart(harness: Harness, tmp_path: Path) -> None:
    noisy = tmp_path / "codex"
    line = '{"method": "turn/completed", "params": {}}'
    noisy.write_text(f"#!/bin/sh\necho '{line}' >&2\nexec {find_codex(None, {})} \"$@\"\n")
    noisy.chmod(0o755)
    assert take(harness.client([ANSWER], codex=noisy)).status == "completed"
    assert line in harness.stderr.read_text()
    assert {} not in [message.get("params") for message in wire(harness, "in") if "turn" in message.get("method", "")]
