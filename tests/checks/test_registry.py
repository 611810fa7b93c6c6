from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from codex_multi_role.checks import CHECKS, check_names, find_check
from codex_multi_role.checks.choose import choose_best
from codex_multi_role.checks.command import run_argv
from codex_multi_role.checks.contract import CheckResult
from codex_multi_role.checks.json_schema import check_schema
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.errors import UsageError
from tests.support.plugins import install


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution that brings two checks of its own, one of which does not load."""
    source = (
        "def spelling(context): return {'status': 'passed'}\n"
        "from codex_multi_role.checks import declare_check\n"
        "from codex_multi_role.checks.text_files import AnswerResult\n"
        "@declare_check(result=AnswerResult, max_seconds=lambda options, deadline: 2 * options.get('rounds', 5))\n"
        "def slow(context): return {'status': 'passed'}\n"
    )
    names, more = ("spelling", "slow"), ("broken = extra_checks:missing", "tests = x:y")
    install(tmp_path, monkeypatch, "checks", names, source, more)


def test_shipped_checks_have_their_names() -> None:
    shipped = {"choose": choose_best, "command": run_argv, "schema": check_schema, "tests": run_tests}
    assert {name: find_check(name) for name in shipped} == shipped


def test_built_in_check_wins_over_an_installed_one(installed: None) -> None:
    assert find_check("tests") is run_tests


@pytest.mark.parametrize("name", check_names())
def test_every_check_declares_what_it_returns(name: str) -> None:
    """Its function returns the declared model, so that mypy and each construction hold the one to the other."""
    check = find_check(name)
    assert check.result is get_type_hints(check.run)["return"]
    assert issubclass(check.result, CheckResult)
    assert check.result.model_config == CheckResult.model_config


def test_installed_check_is_found(installed: None) -> None:
    assert find_check("slow").run.__name__ == "slow"
    with pytest.raises(UsageError, match="'spelling' is a plain function: nothing says which of its results are bad"):
        find_check("spelling")
    assert check_names() == sorted({*check_names(), *CHECKS, "broken", "slow", "spelling"})


def test_unknown_name_gets_the_nearest(installed: None) -> None:
    with pytest.raises(UsageError, match=r'unknown check "speling"; did you mean "spelling"\?') as caught:
        find_check("speling")
    assert str(caught.value.hint).startswith(f"Known: {', '.join(check_names())}.")
    with pytest.raises(UsageError, match=r'unknown check "zzz"$'):
        find_check("zzz")


def test_check_that_does_not_load_is_named(installed: None) -> None:
    with pytest.raises(UsageError, match=r"'broken' \(extra_checks:missing\) does not load"):
        find_check("broken")


@pytest.mark.parametrize(
    ("name", "options", "seconds"),
    [
        ("tests", {}, 600.0),
        ("command", {}, 300.0),
        ("command", {"timeout_seconds": 7}, 7),
        ("command", {"timeout_seconds": 900.0}, 300.0),
        ("command", {"timeout_seconds": "soon"}, 300.0),
        ("schema", {}, 0.0),
        ("choose", {}, 0.0),
        ("merge", {}, 0.0),
        ("slow", {"rounds": 3}, 6),
    ],
)
def test_longest_seconds_is_declared_duration_or_deadline(
    installed: None, name: str, options: dict[str, object], seconds: float
) -> None:
    """A check takes as long as it declares. Without a declaration its deadline counts."""
    assert find_check(name).max_seconds(options, 300.0) == seconds
