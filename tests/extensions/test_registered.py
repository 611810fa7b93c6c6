"""What extensions register, as any plug-in does: the entry points of our own package."""

from __future__ import annotations

from importlib.metadata import distribution

import pytest

from codex_multi_role.checks import CHECKS
from codex_multi_role.checks.tools import TOOLS
from codex_multi_role.cli.lazy_group import INSTALLED, load
from codex_multi_role.cli.main import COMMANDS
from codex_multi_role.reading.registry import hint

OURS = distribution("codex-multi-role").entry_points


def _names(kind: str) -> list[str]:
    return sorted(OURS.select(group=f"codex_multi_role.{kind}").names)


def test_systems_register_beside_what_is_built_in() -> None:
    assert _names("checks")
    assert _names("tools")
    assert not {*_names("checks")} & {*CHECKS}
    assert not {*_names("tools")} & {*TOOLS}


@pytest.mark.parametrize("name", _names("commands"))
def test_every_command_goes_by_its_own_name(name: str) -> None:
    """If it works on a run, that is the latest unless named."""
    command = load(INSTALLED.find(name))
    assert command.name == name
    assert name not in COMMANDS
    assert command.hidden or not any(each.required for each in command.params if each.name == "run")


def test_hints_say_what_to_type() -> None:
    typed = {
        "no_catalog": "codex-multi-role init",
        "settings_files": "config show",
        "not_as_recorded": "--replay-match",
    }
    assert {*typed, "PlanSolver", "rerun"} <= {*_names("hints")}
    assert [about for about, words in typed.items() if words not in hint(about)] == []
