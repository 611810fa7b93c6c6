"""Checks called directly, on a workspace of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import codex_cli_bin
import pytest

from codex_multi_role.checks import CheckContext
from codex_multi_role.codex.permissions import sandboxed
from codex_multi_role.workspace import Workspace
from codex_multi_role.workspace.commands import Sandbox, no_sandbox
from tests.support.console import WITHOUT_PLUGINS
from tests.support.teams import read

MakeContext = Callable[..., CheckContext]
WITH_PLUGINS = {WITHOUT_PLUGINS: ""}
"""The environment of those checks whose pytest loads what is installed, as a user's does."""


@pytest.fixture
def make_context(tmp_path: Path) -> MakeContext:
    """``make_context({"test_x.py": source}, pytest_cmd=...)``: a context on a workspace with these files."""

    def make(
        files: Mapping[str, str],
        /,
        sandbox: Sandbox = no_sandbox,
        seconds: float = 60,
        environment: Mapping[str, str] | None = None,
        **options: object,
    ) -> CheckContext:
        root = tmp_path / "work"
        for name, source in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(source))
        root.mkdir(exist_ok=True)
        usual = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), WITHOUT_PLUGINS: "1"}
        return CheckContext(
            workspace=Workspace(root),
            folder=tmp_path / "runs" / "r1" / "tests" / "001",
            environment={**usual, **(environment or {})},
            deadline_seconds=seconds,
            sandbox=sandbox,
            options=options,
        )

    return make


def run_check(check: Callable[[CheckContext], Mapping[str, Any]], context: CheckContext) -> dict[str, Any]:
    """Run ``check``; its result, which is also in ``result.json`` of the check's folder."""
    result = dict(check(context))
    assert read(context.folder / "result.json") == result
    return result


@pytest.fixture
def codex_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Codex's own sandbox around a command; skips where the system allows none."""
    codex, home = codex_cli_bin.bundled_codex_path(), tmp_path / "codex_home"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))

    def wrap(argv: Sequence[str], writable: Path) -> list[str]:
        return ["env", f"CODEX_HOME={home}", *sandboxed(codex, argv, writable)]

    probe = subprocess.run(wrap(["true"], tmp_path), cwd=tmp_path, capture_output=True, timeout=60, check=False)
    if probe.returncode != 0:
        pytest.skip(f"no sandbox on this machine: {probe.stderr.decode(errors='replace')[-200:]}")
    return wrap
