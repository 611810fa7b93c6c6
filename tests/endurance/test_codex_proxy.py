"""The proxy is worth nothing if it is itself what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.codex.locator import find_codex
from tests.support.codex_proxy import write_launcher
from tests.support.leftovers import processes_of
from tests.support.message_fates import Case, Once

pytestmark = pytest.mark.real

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


CALM = Case("calm", 0)


def test_end_of_its_input_ends_codex_and_it_has_codexs_exit_code(tmp_path: Path) -> None:
    with running(tmp_path, CALM) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(SECONDS) == 0
        assert processes_of(tmp_path) == []


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGINT])
def test_signal_reaches_codex_and_neither_stays(tmp_path: Path, way: signal.Signals) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and all it starts
    with running(tmp_path, CALM) as process:
        process.send_signal(way)
        assert process.wait(SECONDS) in (0, -way)
        assert processes_of(tmp_path) == []


def test_it_dies_as_codex_dies(tmp_path: Path) -> None:
    with running(tmp_path, CALM) as process:
        (codex,) = psutil.Process(process.pid).children()
        codex.kill()
        assert process.wait(SECONDS) == -signal.SIGKILL


def test_proxy_passes_other_commands_through_to_codex(tmp_path: Path) -> None:
    """Commands that do not start an app server, such as --version, give Codex's own output."""
    codex = find_codex(None, {})
    launcher = write_launcher(tmp_path / "codex", Case("cruel", 1), tmp_path / "logs", codex)
    said = [subprocess.check_output([program, "--version"], timeout=SECONDS) for program in (codex, launcher)]
    assert said[0] == said[1]


def test_seed_has_the_same_in_store_whenever_it_is_asked() -> None:
    one, again, other = (Case("cruel", seed).fates("judge.1") for seed in (1, 1, 2))
    numbers = range(1, 500)
    deeds = [[fates("in", number, "any").deeds for number in numbers] for fates in (one, again, other)]
    assert deeds[0] == deeds[1]
    assert deeds[0] != deeds[2]
    assert again("in", 7, "any").chance.random() == one("in", 7, "any").chance.random()
