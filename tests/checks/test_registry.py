from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.checks import check_names, find_check
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.errors import UsageError


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution that brings two checks of its own, one of which does not load."""
    folder = tmp_path / "extra_checks-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-checks\nVersion: 1.0\n")
    points = "[codex_multi_role.checks]\nspelling = extra_checks:spelling\nbroken = extra_checks:missing\ntests = x:y\n"
    (folder / "entry_points.txt").write_text(points)
    (tmp_path / "extra_checks.py").write_text("def spelling(context): return {'status': 'passed'}\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_built_in_check_wins_over_an_installed_one(installed: None) -> None:
    assert find_check("tests") is run_tests


def test_an_installed_check_is_found(installed: None) -> None:
    assert find_check("spelling").__name__ == "spelling"
    assert check_names() == ["broken", "choose", "command", "merge", "schema", "spelling", "tests"]


def test_an_unknown_name_gets_the_nearest(installed: None) -> None:
    with pytest.raises(UsageError, match="no check called 'speling'") as caught:
        find_check("speling")
    assert caught.value.hint == "did you mean 'spelling'?"
    with pytest.raises(UsageError) as caught:
        find_check("zzz")
    assert caught.value.hint == "there are: broken, choose, command, merge, schema, spelling, tests"


def test_a_check_that_does_not_load_is_named(installed: None) -> None:
    with pytest.raises(UsageError, match=r"'broken' \(extra_checks:missing\) does not load"):
        find_check("broken")
