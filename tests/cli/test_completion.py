"""What a shell is offered when Tab is pressed: asked of bash itself, and as its script asks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from codex_multi_role.cli.completion import VARIABLE
from codex_multi_role.cli.main import main
from tests.support.console import completed, console_process
from tests.support.recorded_runs import make_run
from tests.support.workspaces import write_program


class Shell:
    """Asks in ``folder`` as the script of bash does."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture
        patch.chdir(folder)

    def offered(self, line: str) -> list[str]:
        words = line.split()
        at = len(words) - (0 if line.endswith(" ") else 1)
        for name, value in (("COMP_WORDS", line), ("COMP_CWORD", str(at)), (VARIABLE, "bash_complete")):
            self._patch.setenv(name, value)
        main()
        told = self._capture.readouterr()
        assert told.err == ""
        return [each.removeprefix("plain,") for each in told.out.splitlines() if each]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("codex-multi-role wat", ["watch"]),
        ("codex-multi-role --go", ["--goal", "--goal-file"]),
        ("codex-multi-role --playbook rom", ["roman-numerals"]),
        ("codex-multi-role run --flow cyc", ["cycles"]),
        ("codex-multi-role flows graph cyc", ["cycles"]),
        ("codex-multi-role roles show impl", ["implementer"]),
        ("codex-multi-role completion z", ["zsh"]),
    ],
)
def test_commands_options_and_names_are_completed(line: str, expected: list[str], shell: Shell) -> None:
    assert shell.offered(line) == expected


@pytest.mark.extensions
def test_runs_are_offered_with_the_newest_first(tmp_path: Path, shell: Shell) -> None:
    assert shell.offered("codex-multi-role show ") == []
    make_run(tmp_path / "other", "first")
    make_run(tmp_path / "other", "second", started_at="2026-02-01T00:00:00.000+00:00")
    for name in ("watch", "report"):
        assert shell.offered(f"codex-multi-role {name} --runs-dir other ") == ["latest", "second", "first"]


@pytest.mark.parametrize("name", ["roles/catalog.yaml", "codex-multi-role.yaml"])
def test_what_cannot_be_read_offers_nothing(name: str, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / name).write_text("roles: {")
    assert shell.offered("codex-multi-role roles show ") == []


@pytest.mark.real
@pytest.mark.sample("completion")
def test_bash_takes_the_script(tmp_path: Path) -> None:
    script = console_process("completion", "bash", folder=tmp_path).stdout
    write_program(tmp_path / "codex-multi-role", f'#!/bin/sh\nexec {sys.executable} -m codex_multi_role "$@"\n')
    words = "COMP_WORDS=(codex-multi-role wat); COMP_CWORD=1"
    asked = f'{words}; _codex_multi_role_completion codex-multi-role; echo "$COMPREPLY"'
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = completed(["bash", "-c", f"{script}\n{asked}"], tmp_path, variables)
    assert done.stdout == "watch\n", done.stderr
