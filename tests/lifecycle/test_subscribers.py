"""Subscribers of extensions: entry points in the group ``codex_multi_role.subscribers``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.session import Session
from codex_multi_role.lifecycle.subscribers import InstalledSubscribers
from tests.support.plugins import install
from tests.support.teams import Record, TeamFolder, say

SOURCE = """
from contextlib import contextmanager
got, ended = [], []

@contextmanager
def listens():
    yield got.append
    ended.append(len(got))

@contextmanager
def wants_none():
    yield None

@contextmanager
def fails_at_start():
    raise KeyError("start")
    yield

@contextmanager
def fails_at_end():
    yield got.append
    raise SystemExit("end")

@contextmanager
def fails():
    def take(record):
        got.append(record)
        raise ValueError(record["type"])
    yield take
"""
BROKEN = "broken = extra_subscribers:no_such"
Installed = Callable[..., None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    def put(*names: str, more: tuple[str, ...] = ()) -> None:
        install(tmp_path / "installed", monkeypatch, "subscribers", names, SOURCE, more)

    return put


def got() -> list[Record]:
    return list(sys.modules["extra_subscribers"].got)


def ended() -> list[int]:
    """How many events there were when a subscriber's context was left."""
    return list(sys.modules["extra_subscribers"].ended)


def events(*types: str) -> list[Record]:
    return [{"type": each} for each in types]


def test_events_before_it_opens_come_first(installed: Installed) -> None:
    installed("listens", "wants_none")
    with closing(InstalledSubscribers()) as subscribers:
        subscribers(*events("first"))
        subscribers.open()
        assert got() == events("first")
        subscribers(*events("second"))
        subscribers.open()
        subscribers(*events("third"))
        assert not ended()
    assert got() == events("first", "second", "third")
    assert ended() == [3]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fails", "fails failed: ValueError: first"),
        ("fails_at_start", "fails_at_start failed: KeyError: 'start'"),
        ("fails_at_end", "fails_at_end failed: SystemExit: end"),
    ],
)
def test_failure_is_a_warning_and_the_others_continue(
    name: str, said: str, installed: Installed, caplog: pytest.LogCaptureFixture
) -> None:
    installed(name, "listens")
    with closing(InstalledSubscribers()) as subscribers:
        subscribers.open()
        for event in events("first", "second"):
            subscribers(event)
    assert ended() == [{"fails": 3, "fails_at_start": 2, "fails_at_end": 4}[name]]
    assert [record.getMessage() for record in caplog.records] == [f"the subscriber {said}"]


def test_one_that_does_not_load_is_a_warning(installed: Installed, caplog: pytest.LogCaptureFixture) -> None:
    installed("listens", more=(BROKEN,))
    with closing(InstalledSubscribers()) as subscribers:
        subscribers(*events("first"))
    assert got() == events("first")
    assert "does not load" in caplog.text


def test_metadata_that_cannot_be_read_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", Mock(side_effect=KeyError))
    monkeypatch.syspath_prepend(tmp_path)
    with closing(InstalledSubscribers()) as subscribers:
        subscribers(*events("first"))
    assert "the subscriber of an extension failed: KeyError" in caplog.text


@pytest.mark.real
@pytest.mark.usefixtures("scripted_codex")
@pytest.mark.parametrize("prepared", [True, False])
def test_subscriber_gets_every_event_of_a_run(
    tmp_path: Path, installed: Installed, monkeypatch: pytest.MonkeyPatch, prepared: bool
) -> None:
    """Also of one that fails before it starts a process."""
    installed("fails", "listens")
    if not prepared:
        monkeypatch.setattr(Session, "_prepare", Mock(side_effect=UsageError("not prepared")))
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    assert team.run().outcome == ("cycles_used_up" if prepared else "wrong_usage")
    assert got()[1:] == team.events
