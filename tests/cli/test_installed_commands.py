"""Commands of extensions: entry points in the group ``codex_multi_role.commands``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codex_multi_role.cli.main import group
from tests.support.plugins import install

SOURCE = """
import click

@click.command(short_help="Greet somebody.")
@click.argument("name")
def greet(name):
    print(f"hello {name}")

@click.command(short_help="Not ours.")
def runs():
    print("not ours")
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "commands", ["greet", "runs"], SOURCE, ["broken = extra_commands:no_such"])
    monkeypatch.chdir(tmp_path)


def called(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, prog_name="codex-multi-role")


def test_command_of_an_extension_is_called_by_its_name() -> None:
    assert called("greet", "Ada").output == "hello Ada\n"


def test_help_lists_it_below_the_name_of_its_package() -> None:
    shown = called("--help").output
    assert "\nExtra-commands:\n" in shown
    assert re.search(r"^  greet +Greet somebody\.$", shown, re.MULTILINE)
    assert "the command 'broken' (extra_commands:no_such) does not load" in " ".join(shown.split())


def test_it_replaces_none_of_ours() -> None:
    assert "not ours" not in called("runs", "--help").output


def test_misspelt_one_is_suggested() -> None:
    assert 'unknown command "gret"; did you mean "greet"?' in called("gret", "Ada").output


def test_one_that_does_not_load_says_why() -> None:
    refused = called("broken", "--help")
    assert "does not load" in str(refused.exception)
