from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from codex_multi_role.checks import CheckContext
from codex_multi_role.workspace import Workspace
from codex_multi_role.workspace.commands import Sandbox, no_sandbox
from tests.conftest import WITHOUT_PLUGINS

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
