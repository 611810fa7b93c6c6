"""What a shell is offered when Tab is pressed: asked of bash itself, and as its script asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console import DEADLINE_SECONDS, console_process
from tests.support.recorded_runs import make_run


def offered(line: str, folder: Path) -> list[str]:
    words = line.split()
    at = len(words) - (0 if line.endswith(" ") else 1)
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(at), "_CODEX_MULTI_ROLE_COMPLETE": "bash_complete"}
    done = console_process(folder=folder, variables=variables)
    assert done.stderr == ""
    return [each.removeprefix("plain,") for each in done.stdout.splitlines() if each]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("codex-multi-role wat", ["watch"]),
        ("codex-multi-role --go", ["--goal", "--goal-file"]),
        ("codex-multi-role --playbook cir", ["circle"]),
        ("codex-multi-role run --flow plan", ["plan-solve"]),
        ("codex-multi-role flows graph cyc", ["cycles"]),
        ("codex-multi-role roles show impl", ["implementer"]),
        ("codex-multi-role completion z", ["zsh"]),
    ],
)
def test_commands_options_and_names_are_completed(line: str, expected: list[str], tmp_path: Path) -> None:
    assert offered(line, tmp_path) == expected


def test_runs_are_offered_with_the_newest_first(tmp_path: Path) -> None:
    assert offered("codex-multi-role show ", tmp_path) == []
    make_run(tmp_path / "other", "first")
    make_run(tmp_path / "other", "second", started_at="2026-02-01T00:00:00.000+00:00")
    for name in ("watch", "report"):
        assert offered(f"codex-multi-role {name} --runs-dir other ", tmp_path) == ["latest", "second", "first"]


@pytest.mark.parametrize("name", ["roles/catalog.yaml", "codex-multi-role.yaml"])
def test_what_cannot_be_read_offers_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / name).write_text("roles: {")
    assert offered("codex-multi-role roles show ", tmp_path) == []


def test_bash_takes_the_script(tmp_path: Path) -> None:
    script = console_process("completion", "bash", folder=tmp_path).stdout
    program = tmp_path / "codex-multi-role"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m codex_multi_role "$@"\n')
    program.chmod(0o755)
    words = "COMP_WORDS=(codex-multi-role wat); COMP_CWORD=1"
    asked = f'{words}; _codex_multi_role_completion codex-multi-role; echo "$COMPREPLY"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.stdout == "watch\n", done.stderr
