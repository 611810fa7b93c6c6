"""Processes of ours: who starts them, what they get, and when they end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from codex_multi_role.errors import CodexMultiRoleError, StorageError, UsageError
from codex_multi_role.host.own_python import Lifetime, read_order, start
from codex_multi_role.lifecycle.process_guard import guarded
from tests.support.checks import MakeContext, make_context

__all__ = ["make_context"]
SECONDS = 60.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Started:
    """One program with its arguments. ``environment`` is None if it is inherited."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] | None

    @property
    def options_of_python(self) -> tuple[str, ...] | None:
        """What follows this Python, which may start after a shell; None if the program is another one."""
        return self.argv[self.argv.index(sys.executable) + 1 :] if sys.executable in self.argv else None


_listeners: list[list[Started]] = []


@cache
def _listen() -> None:
    """Once for the whole process: an audit hook cannot be removed."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _listeners:
        _, argv, _, environment = arguments
        for found in _listeners:
            found.append(Started(tuple(map(os.fsdecode, argv)), environment))


@contextmanager
def recorded_starts() -> Iterator[list[Started]]:
    """All programs that any thread of this process starts meanwhile."""
    found: list[Started] = []
    _listen()
    _listeners.append(found)
    try:
        yield found
    finally:
        _listeners.remove(found)


def _start_worker(folder: Path, _: MakeContext) -> None:
    from codex_multi_role.extensions.machines.workers.worker import RunChild

    child = RunChild({"queue": "goals"}, folder / "worker.log")
    child.send(signal.SIGKILL)
    child.close()


def _start_batch(folder: Path, _: MakeContext) -> None:
    from codex_multi_role.extensions.machines.batches.batch_folder import BatchFolder
    from codex_multi_role.extensions.machines.batches.local_runs import LocalRuns
    from codex_multi_role.extensions.machines.batches.planned_runs import plan_runs
    from tests.support.batches import defaults, goals

    batch = BatchFolder.of(folder / "runs", "goals")
    batch.output_path.mkdir(parents=True)
    [run] = plan_runs(goals({"goal": "g"}), defaults(folder), "goals", folder / "clones")
    runs = LocalRuns(batch)
    runs.start(run)
    runs.stop()
    while not any(name == run.id for name, _ in runs.news(LOOK_SECONDS)):
        pass


def _start_web(folder: Path, _: MakeContext) -> None:
    from codex_multi_role.extensions.pages.serve.starting import NewRun, RunNotStarted, RunStarter

    starter, before = RunStarter(folder / "runs", None, lambda: True), psutil.Process().children()
    with pytest.raises(RunNotStarted):
        starter.start(NewRun("cycles"))
    children = set(psutil.Process().children()) - set(before)
    for child in children:
        child.kill()
    psutil.wait_procs(children, SECONDS)
    assert starter.reap() == 0


def _start_guard(folder: Path, _: MakeContext) -> None:
    with guarded(folder):
        pass


def _start_search(folder: Path, make_context: MakeContext) -> None:
    from codex_multi_role.extensions.research.search_providers import SearchQuery, ask
    from codex_multi_role.extensions.research.search_settings import SearchProvider

    context = make_context({}, environment=dict(os.environ))
    provider = SearchProvider(name="web", kind="http", endpoint="http://127.0.0.1:9/{query}", timeout_seconds=SECONDS)
    outcome = ask(context, provider, SearchQuery("bridge", 1, ""))
    assert outcome.status == "failed"
    assert "cannot be reached" in outcome.reason


@pytest.mark.real
@pytest.mark.parametrize(
    "starts",
    [
        _start_guard,
        *(
            pytest.param(each, marks=pytest.mark.extensions)
            for each in (_start_worker, _start_batch, _start_web, _start_search)
        ),
    ],
)
def test_processes_of_ours_import_nothing_from_where_they_start(
    starts: Callable[[Path, MakeContext], None],
    make_context: MakeContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":.:src:/opt/kept")
    with recorded_starts() as started:
        starts(tmp_path, make_context)
    own = [each for each in started if each.options_of_python is not None]
    assert own
    for each in own:
        assert each.options_of_python is not None
        assert each.options_of_python[0] in ("-P", "-I")
        assert each.environment is not None
        assert each.environment["PYTHONPATH"] == "/opt/kept"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            OSError(errno.EAGAIN, "Resource temporarily unavailable"),
            StorageError,
            "cannot start /usr/bin/true: Resource",
        ),
        (OSError(errno.ENOENT, "No such file or directory"), StorageError, "cannot start /usr/bin/true: No such file"),
        (OSError(errno.E2BIG, "Argument list too long"), UsageError, "the values cannot be passed to a process: "),
        (ValueError("embedded null byte"), UsageError, "the values cannot be passed to a process: embedded null byte"),
    ],
)
def test_program_that_does_not_start_is_named(
    error: Exception, kind: type[CodexMultiRoleError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(subprocess, "Popen", fails)
    with pytest.raises(kind, match=message):
        start(["/usr/bin/true"], Lifetime.OUTLIVES_US)


def test_order_is_read_from_its_descriptor(tmp_path: Path) -> None:
    (tmp_path / "order").write_text('{"a": 1}')
    assert read_order(os.open(tmp_path / "order", os.O_RDONLY)) == {"a": 1}


@pytest.mark.real
def test_nothing_waits_for_a_process_that_outlives_us(tmp_path: Path) -> None:
    """Its input is a file: nobody waits until it is read."""
    log = tmp_path / "log"
    log.write_text("earlier\n")
    copies = [sys.executable, "-c", "import sys; sys.stderr.write(sys.stdin.read())"]
    assert start(copies, Lifetime.OUTLIVES_US, "x" * 200_000, log).wait(SECONDS) == 0
    assert log.read_text() == "earlier\n" + "x" * 200_000
