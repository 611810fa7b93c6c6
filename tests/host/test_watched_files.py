"""Folders are watched for changes, and no longer than they are to be."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from codex_multi_role.host.watched_files import Changes, watched

NOTICED_SECONDS = 20


def test_changes_are_reported_once_after_settling(tmp_path: Path) -> None:
    changes = Changes()
    with watched([tmp_path], changes):
        for line in ("one", "two"):
            (tmp_path / "role.yaml").write_text(line)
        assert changes.wait(NOTICED_SECONDS)
        changes.end()
        assert not changes.wait(NOTICED_SECONDS)


def test_who_reads_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "role.yaml").write_text("one")
    changes = Changes()
    with watched([tmp_path], changes):
        (tmp_path / "role.yaml").read_text()
        assert not changes.wait(0.3)


def test_what_cannot_be_watched_leaves_nobody_behind(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    before = set(threading.enumerate())
    with pytest.raises(FileNotFoundError), watched([tmp_path / "there", tmp_path / "gone"], Changes()):
        pass
    for thread in set(threading.enumerate()) - before:
        thread.join(NOTICED_SECONDS)
    assert set(threading.enumerate()) <= before


def test_library_writes_nothing_to_the_terminal(tmp_path: Path) -> None:
    """Python prints what a logger without any handler has to say."""
    with watched([tmp_path], Changes()):
        handlers = logging.getLogger("watchdog").handlers
    assert [type(each) for each in handlers] == [logging.NullHandler]
