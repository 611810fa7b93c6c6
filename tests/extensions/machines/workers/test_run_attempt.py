"""What a row of the database says of a run, in which order runs are handed out: it names no program and no place."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import codex_multi_role.lifecycle.running as running
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.workers import run_attempt as module
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun
from codex_multi_role.extensions.machines.workers.run_attempt import RunAttempt
from codex_multi_role.extensions.machines.workers.run_requests import (
    RANKS,
    RunRequest,
    can_take,
    dequeue_order,
    queue_with_labels,
)
from codex_multi_role.extensions.machines.workers.submission import NOT_ON_WORKERS, OF_THIS_MACHINE
from codex_multi_role.lifecycle.placement import Placement
from codex_multi_role.run_options import RunOptions

PLACE = "/elsewhere"


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunAttempt:
    """An attempt that unpacks, clones and restores nothing."""
    request = RunRequest(run_id="first", options={"goal": "it"}, definitions={}, workspace={})
    run = Mock(spec=QueuedRun, run_id="first", manifest=None, request=request)
    made = RunAttempt(Mock(url="sqlite:///q"), Mock(), Mock(folder=None), run, tmp_path, Event(), print)
    monkeypatch.setattr(made, "_make_workspace", lambda: tmp_path / "clone")
    monkeypatch.setattr(module, "unpack_definitions", lambda *_: (tmp_path / "catalog.yaml", None))
    monkeypatch.setattr(module, "restore_run", Mock())
    monkeypatch.setattr(module, "fill_workspace", Mock())
    monkeypatch.setattr(module, "receive", lambda *_: set())
    for name in ("run", "resume"):
        monkeypatch.setattr(running, name, Mock())
    return made


def test_item_of_an_earlier_version_ends_with_the_reason(attempt: RunAttempt) -> None:
    request = attempt._run.request
    item = request.of({**request.as_json(), "parent": "another", "unit": "each.1.0", "start": {}})
    attempt._run = Mock(spec=QueuedRun, run_id="first", manifest=None, request=item)
    assert attempt.work(Mock()).startswith("could not start: this is an item of run another: items no longer run on")
    assert not running.run.called  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(NOT_ON_WORKERS))
def test_row_names_no_program_or_place(name: str, attempt: RunAttempt) -> None:
    attempt._run.request.options[name] = PLACE
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} cannot be used for a run on workers"):
        attempt._started(Mock(spec=Placement))


def test_worker_chooses_its_places_itself(attempt: RunAttempt) -> None:
    attempt._run.request.options.update(dict.fromkeys(OF_THIS_MACHINE, PLACE))
    attempt._started(Mock(spec=Placement))
    (options,) = running.run.call_args.args  # type: ignore[attr-defined]
    assert PLACE not in json.dumps(options.as_record())


@pytest.mark.parametrize("name", sorted({*NOT_ON_WORKERS, *OF_THIS_MACHINE}))
def test_change_in_a_row_names_no_program_or_place(name: str, attempt: RunAttempt) -> None:
    record: dict[str, Any] = {"options": RunOptions(workspace=Path("/before")).as_record()}
    attempt._folder.path.mkdir(parents=True)
    attempt._folder.write_record(record)
    attempt._run.request.changes[name] = PLACE
    with pytest.raises(UsageError, match="cannot be used for a run on workers"):
        attempt._resumed(Mock(spec=Placement))
    attempt._run.request.changes.clear()
    attempt._resumed(Mock(spec=Placement))
    assert running.resume.called  # type: ignore[attr-defined]


NAMES = st.text("abc-_.1", min_size=1, max_size=5)


@given(NAMES, st.sets(NAMES, max_size=4), st.sets(NAMES, max_size=4), st.sets(NAMES, max_size=4))
def test_worker_takes_runs_whose_labels_it_has(
    queue: str, needed: set[str], labels: set[str], queues: set[str]
) -> None:
    full = queue_with_labels(queue, needed)
    assert can_take(full, queues, labels) == (queue in queues and needed <= labels)


@pytest.mark.parametrize("name", ["", "a+b", "a b", "a,b"])
def test_queue_name_that_would_be_misread_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a queue"):
        queue_with_labels(name, [])
    with pytest.raises(UsageError, match="cannot name a queue"):
        queue_with_labels("goals", [name])


@given(st.tuples(st.integers(-99, 99), st.integers(0, RANKS)), st.tuples(st.integers(-99, 99), st.integers(0, RANKS)))
def test_higher_priority_and_lower_rank_come_first(one: tuple[int, int], other: tuple[int, int]) -> None:
    orders = dequeue_order(*one), dequeue_order(*other)
    assert all(1 <= order < 2**31 for order in orders)
    if min(max(one[0], -50), 50) > min(max(other[0], -50), 50) or (one[0] == other[0] and one[1] < other[1] < RANKS):
        assert orders[0] < orders[1]


def test_request_survives_its_row() -> None:
    request = RunRequest(
        run_id="one", options={"goal": "g"}, definitions={"archive": "a"}, workspace={}, labels=("gpu",), changes={}
    )
    assert RunRequest.of(request.as_json()) == request
