"""``--watch``: what somebody saves is checked and drawn again."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from tests.support.console import DEADLINE_SECONDS, environment, line, reading

pytestmark = pytest.mark.real

CATALOG = "version: 1\nroles: [{name: %s, prompt_text: Do it., behaviors: {can_finish: true}}]\n"
FLOW = "steps: [{id: %s, ask: one}]\n"


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, which Ctrl-C is to end."""
    program = [sys.executable, "-u", "-m", "codex_multi_role", *arguments, "--watch"]
    pipe = subprocess.PIPE
    started = subprocess.Popen(program, cwd=folder, env=environment(), stdout=pipe, stderr=pipe, text=True)
    with started as child, reading(child):
        yield child
        child.send_signal(signal.SIGINT)
        assert child.wait(DEADLINE_SECONDS) == 130


@pytest.mark.sample("roles")
def test_catalog_is_checked_again_whenever_it_is_saved(tmp_path: Path) -> None:
    catalog = tmp_path / "roles/catalog.yaml"
    catalog.parent.mkdir()
    catalog.write_text(CATALOG % "one")
    with watching(tmp_path, "roles", "validate") as child:
        assert line(child.stdout) == "ok: roles/catalog.yaml: one\n"
        assert line(child.stderr) == "watching roles (Ctrl-C to stop)\n"
        catalog.write_text("roles: {")
        assert line(child.stderr).startswith("error: roles/catalog.yaml:2:")
        while line(child.stderr) != "watching roles (Ctrl-C to stop)\n":
            pass
        catalog.write_text(CATALOG % "two")
        assert line(child.stdout) == "ok: roles/catalog.yaml: two\n"


@pytest.mark.sample("flows")
def test_flow_is_drawn_again_whenever_it_is_saved(tmp_path: Path) -> None:
    flow = tmp_path / "roles/flows/own.yaml"
    flow.parent.mkdir(parents=True)
    (tmp_path / "roles/catalog.yaml").write_text(CATALOG % "one")
    flow.write_text(FLOW % "begin")
    with watching(tmp_path, "flows", "graph", "own", "--ascii") as child:
        assert line(child.stderr) == "watching roles (Ctrl-C to stop)\n"
        flow.write_text(FLOW % "otherwise")
        while "otherwise" not in line(child.stdout):
            pass


def test_folder_that_cannot_be_watched_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "catalog.yaml").write_text(CATALOG % "one")
    missing = tmp_path / "nowhere"
    assert run_guarded(group, ["roles", "validate", "--watch", "--roles", str(missing)]) == 2
    assert f"error: cannot watch {missing}: No such file or directory" in capsys.readouterr().err
