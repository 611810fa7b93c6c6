"""The log of what a role's process and the run say to each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.codex import wire_log
from codex_multi_role.codex.wire_log import WireLog


@pytest.mark.parametrize("size", [3, 64, 1_000])
@pytest.mark.parametrize("before", ["", '{"one": 1}\n', '{"one": 1}\n{"two": 2}\n'])
@pytest.mark.parametrize("partial", ["", '{"at":"2026-11-25T22:43:35.628+00:00","direct'])
def test_partial_line_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, before: str, partial: str
) -> None:
    """A full disk leaves half a line; the next session's first line then was unreadable as well."""
    monkeypatch.setattr(wire_log, "BLOCK_BYTES", size)
    path = tmp_path / "events.jsonl"
    path.write_text(before + partial)
    log = WireLog(path, str)
    log.open()
    log.write("in", b'{"id":1}')
    log.close()
    kept, _, added = path.read_text().rpartition('{"at"')
    assert log.failure is None
    assert kept == before
    assert json.loads('{"at"' + added)["message"] == {"id": 1}


def test_unwritable_log_is_kept_as_its_failure(tmp_path: Path) -> None:
    log = WireLog(tmp_path, str)
    log.open()
    log.write("in", b"{}")
    assert isinstance(log.failure, OSError)
