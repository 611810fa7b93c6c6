"""Why test generation ended without success, as the command line and ``show`` print it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.generation import Generation

REASON = "cmd contains no Python file to test; testgen supp"


@pytest.mark.real
def test_reason_is_printed_at_the_end_and_by_show(tmp_path: Path) -> None:
    given = Generation(tmp_path, {"cmd/main.go": "package main\n"})
    done = console(
        *given.team.command("--flow", "testgen", "--no-test-sandbox", "-i", "target=cmd")[3:], folder=tmp_path
    )
    assert (done.returncode, REASON in done.stderr) == (1, True), done.stderr
    shown = console("show", "latest", folder=tmp_path)
    assert REASON in shown.stdout + shown.stderr, shown.stdout
