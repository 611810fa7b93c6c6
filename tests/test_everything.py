"""The command that runs what a release needs, and the workflow that uses it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.everything import CHECKS, run_checks, weekly

TOP = Path(__file__).parents[1]


def test_failure_stops_nothing_and_is_listed_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    executed: list[Sequence[str]] = []

    def execute(command: Sequence[str]) -> int:
        executed.append(command)
        return 3 if "bad" in command else 0

    assert run_checks({"first": "python bad", "second": "sh 'a b'"}, execute) == ["first"]
    assert executed == [["python", "bad"], ["sh", "a b"]]
    assert re.fullmatch(
        r"\+ python bad\n\+ sh 'a b'\nfirst +0 s  failed: exit code 3\nsecond +0 s  passed\n", capsys.readouterr().out
    )


@pytest.mark.extensions  # a checkout without them lacks some of the files
@pytest.mark.parametrize("check", [*CHECKS.values(), *weekly(1).values()])
def test_each_check_names_existing_files_and_modules(check: str) -> None:
    program, *words = shlex.split(check)
    if program == "python":
        assert find_spec(words[1]) is not None
    assert all((TOP / word).exists() for word in words if "/" in word)


def test_release_runs_each_check() -> None:
    jobs = yaml.safe_load((TOP / ".github/workflows/release.yml").read_text())["jobs"]
    assert jobs["everything"]["strategy"]["matrix"]["check"] == list(CHECKS)
    assert "everything" in jobs["publish"]["needs"]
