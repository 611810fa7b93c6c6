from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.cli.options import CHANGEABLE
from codex_multi_role.cli.resume import changes_of, resume
from codex_multi_role.run_options import RunOptions

REMEMBERED = {"cycles": 3, "inputs": {"a": "1", "b": "2"}, "config": ["model=x", "other=y"]}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def changes(*arguments: str) -> dict[str, Any]:
    with resume.make_context("resume", ["latest", *arguments]) as context:
        return changes_of(context, REMEMBERED)


def test_what_is_not_given_does_not_change() -> None:
    assert changes() == {}


def test_what_is_given_changes_even_to_the_default() -> None:
    assert changes("--cycles", "3", "--no-run-tests") == {"cycles": 3, "run_tests": False}


def test_environment_changes_a_run_the_settings_file_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("codex-multi-role.yaml").write_text("cycles: 9\nmodel: z\n")
    monkeypatch.setenv("CODEX_MULTI_ROLE_MODEL", "m")
    assert changes() == {"model": "m"}


def test_what_may_be_repeated_adds_to_what_the_run_has() -> None:
    given = changes("-i", "b=3", "-c", "model=x", "-c", "third=z")
    assert given == {"inputs": {"a": "1", "b": "3"}, "config": ("other=y", "model=x", "third=z")}


def test_changes_are_run_options() -> None:
    assert {setting.key for setting in CHANGEABLE} - {"input"} < set(RunOptions.__dataclass_fields__)
