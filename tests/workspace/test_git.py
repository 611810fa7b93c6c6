"""Git ends at once when it is stopped, whatever it has printed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.workspace.git import Git


@pytest.fixture
def git(tmp_path: Path) -> Git:
    made = Git(tmp_path, tmp_path)
    made.run("init", "--quiet")
    return made


def test_interrupted_git_ends_without_its_output_being_read(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """To collect gigabytes took longer than a person waits, and twice their memory."""
    collected: list[int] = []

    def interrupted(self: subprocess.Popen[bytes], *given: Any, **named: Any) -> None:
        collected.append(self.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        git.run("cat-file", "--batch")
    assert len(collected) == 1
    assert not psutil.pid_exists(collected[0])


def test_git_allocates_no_object_beyond_the_limit(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack of a few bytes may stand for an object of any size."""
    assert git.environment["GIT_ALLOC_LIMIT"] == "1g"
    monkeypatch.setattr("codex_multi_role.workspace.git.MAX_OBJECT_MEMORY", "1k")
    with pytest.raises(StorageError, match="over limit"):
        git.run("hash-object", "--stdin", stdin=bytes(100_000))
