"""The commands of the guide to many machines, with workers that execute what `batch` submits."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.docs.newcomer import give
from tests.docs.pages import MANY_MACHINES, commands

pytestmark = [pytest.mark.extensions, pytest.mark.long]
DATABASE, STORE, HOME = "postgresql://team@db.example.org/runs", "/mnt/team", "/home/you"
EXPORT = re.compile(r"export (\w+)=(\S+)")
WORKER = "codex-multi-role worker "
A_REPOSITORY = "git init -q && git -c user.name=You -c user.email=you@example.org commit -q --allow-empty -m Start"
SECONDS = 240


def test_commands_of_many_machines_work(tmp_path: Path, database_url: str) -> None:
    """From top to bottom. Workers start on two machines and work until the last command; then they are drained."""
    (folder := tmp_path / "project").mkdir()
    assert give(A_REPOSITORY, folder).returncode == 0
    exported: dict[str, str] = {}
    names = iter([("one", "two"), ("three", "four")])
    with ExitStack() as workers:
        for command in commands(MANY_MACHINES):
            here = command.replace(DATABASE, database_url).replace(STORE, str(tmp_path)).replace(HOME, str(tmp_path))
            if setting := EXPORT.fullmatch(here):
                exported[setting[1]] = setting[2]
            elif here.startswith(WORKER):
                for name in next(names):
                    workers.enter_context(working(f"{here} --name {name}", tmp_path / name, exported))
            else:
                done = give(here, folder, exported)
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
                assert "Traceback" not in done.stderr


@contextmanager
def working(command: str, folder: Path, exported: dict[str, str]) -> Iterator[None]:
    """Let a worker work in ``folder`` during the block; afterwards, it leaves without an error."""
    folder.mkdir(exist_ok=True)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=folder, env={**os.environ, **exported}, text=True, stderr=pipe
    )
    try:
        yield
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 0, said
    assert "Traceback" not in said
