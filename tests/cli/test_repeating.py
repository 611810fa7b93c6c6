"""``--watch``: what somebody saves is checked and drawn again."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .console import DEADLINE_SECONDS, environment

CATALOG = "version: 1\nroles: [{name: %s, prompt_text: Do it.}]\n"
FLOW = "steps: [{id: %s, ask: one}]\n"


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, which Ctrl-C is to end."""
    program = [sys.executable, "-u", "-m", "codex_multi_role", *arguments, "--watch"]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, cwd=folder, env=environment(), stdout=pipe, stderr=pipe, text=True) as child:
        try:
            yield child
            child.send_signal(signal.SIGINT)
            assert child.wait(DEADLINE_SECONDS) == 130
        finally:
            child.kill()


def line(child: subprocess.Popen[str], *, of_error: bool = False) -> str:
    stream = child.stderr if of_error else child.stdout
    assert stream is not None
    return stream.readline()


def test_a_catalog_is_checked_again_whenever_it_is_saved(tmp_path: Path) -> None:
    catalog = tmp_path / "roles/catalog.yaml"
    catalog.parent.mkdir()
    catalog.write_text(CATALOG % "one")
    with watching(tmp_path, "roles", "validate") as child:
        assert line(child) == "ok: roles/catalog.yaml: one\n"
        assert line(child, of_error=True) == "watching roles; Ctrl-C ends\n"
        catalog.write_text("roles: {")
        assert line(child, of_error=True).startswith("error: roles/catalog.yaml: line 2: ")
        while line(child, of_error=True) != "watching roles; Ctrl-C ends\n":
            pass
        catalog.write_text(CATALOG % "two")
        assert line(child) == "ok: roles/catalog.yaml: two\n"


def test_a_flow_is_drawn_again_whenever_it_is_saved(tmp_path: Path) -> None:
    flow = tmp_path / "roles/flows/own.yaml"
    flow.parent.mkdir(parents=True)
    (tmp_path / "roles/catalog.yaml").write_text(CATALOG % "one")
    flow.write_text(FLOW % "begin")
    with watching(tmp_path, "flows", "graph", "own", "--ascii") as child:
        assert line(child, of_error=True) == "watching roles; Ctrl-C ends\n"
        flow.write_text(FLOW % "otherwise")
        drawn = line(child)
        while drawn and "otherwise" not in drawn:
            drawn = line(child)
        assert "otherwise" in drawn
