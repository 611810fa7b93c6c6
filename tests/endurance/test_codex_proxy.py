"""The proxy is worth nothing if it is itself what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.locator import find_codex
from tests.support.codex_proxy import write_launcher
from tests.support.leftovers import processes_of
from tests.support.message_fates import Case, Once

SECONDS = 30.0
INITIALIZE = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "0"}}}


@contextmanager
def running(folder: Path, once: Once | Case) -> Iterator[subprocess.Popen[bytes]]:
    """The proxy with a Codex that has answered its first request."""
    codex = find_codex(None, {})
    launcher = write_launcher(folder / "codex", once, folder / "logs", codex)
    argv = [str(launcher), *app_server_argv(codex, ())[1:]]  # without them Codex begins with asking a public host
    (folder / "home").mkdir()
    environment = {**os.environ, "CODEX_HOME": str(folder / "home")}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=environment, cwd=folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
            yield process
        finally:
            process.kill()


def close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def kill_codex(process: subprocess.Popen[bytes]) -> None:
    (codex,) = psutil.Process(process.pid).children()
    codex.kill()


ENDS: dict[str, tuple[Callable[[subprocess.Popen[bytes]], None], Collection[int]]] = {
    "end of its input": (close_input, [0]),
    "signal": (lambda process: process.send_signal(signal.SIGTERM), [0, -signal.SIGTERM]),
    "death of Codex": (kill_codex, [-signal.SIGKILL]),
}


@pytest.mark.real
@pytest.mark.parametrize("end", ENDS)
def test_it_ends_with_codex_and_has_its_exit_code(tmp_path: Path, end: str) -> None:
    bring_about, codes = ENDS[end]
    with running(tmp_path, Case("calm", 0)) as process:
        bring_about(process)
        assert process.wait(SECONDS) in codes
        assert processes_of(tmp_path) == []
