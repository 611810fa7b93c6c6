"""Runs that an extension finds elsewhere: an entry point in the group ``codex_multi_role.runs``."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.run_folder import RunFolder
from tests.support.console import console
from tests.support.plugins import install
from tests.support.recorded_runs import make_run

SOURCE = """
from pathlib import Path

from codex_multi_role.cli.run_additions import RunFinder, Told
from codex_multi_role.cli.setting import Setting
from codex_multi_role.run_folder import RunFolder

class Away:
    run_id = "away"

    def folder(self):
        return RunFolder(Path("elsewhere/away"))

    def cancel(self):
        record = self.folder().record()
        self.folder().write_record({**record, "outcome": "cancelled", "reason": "asked to"})

class Place:
    def __str__(self):
        return "a far place"

    def find(self, reference, runs_dir):
        return Away() if reference == "away" else RunFolder.find(runs_dir, reference)

    def look(self, here):
        return here.look()

    def close(self):
        print("closed")

away = RunFinder(
    Setting(["--place"], help="Also the runs there."),
    lambda name: Place() if name == "far" else None,
    arguments=lambda shared: ["--place", shared["place"]],
    tell=lambda record: Told(where=", on a ship", lines=("captain    anna",)),
)
"""
STATUS = """
from codex_multi_role.presentation.outcome import IDLE, StatusWords

at_sea = StatusWords("at_sea", IDLE, "~", "The run is at sea.", "Sailing")
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "runs", ["away"], SOURCE)
    make_run(tmp_path / "elsewhere", "away")


def test_run_is_found_where_the_address_says(tmp_path: Path) -> None:
    shown = console("show", "away", "--place", "far", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.endswith("closed\n")


def test_extension_says_what_is_shown_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who works on it, what its status means, and which option a command for it needs."""
    install(tmp_path, monkeypatch, "statuses", ["at_sea"], STATUS)
    end = {"status": "at_sea", "outcome": "", "exit_code": None, "hint": "`codex-multi-role watch RUN` shows it."}
    away = RunFolder(tmp_path / "elsewhere/away")
    away.write_record({**away.record(), **end, "shared": {"place": "far"}})
    shown = console("show", "away", "--place", "far", folder=tmp_path).stdout
    assert "status     at_sea: Sailing\ncaptain    anna\n" in shown
    assert ", on a ship\n" in shown
    assert "`codex-multi-role watch away --place far`" in shown


def test_it_is_decided_about_there(tmp_path: Path) -> None:
    done = console("cancel", "away", "--place", "far", folder=tmp_path)
    assert done.stderr == "away: Cancelled: asked to\n"


def test_place_is_a_variable_and_a_key_of_settings_files(tmp_path: Path) -> None:
    shown = console("show", "away", folder=tmp_path, variables={"CODEX_MULTI_ROLE_PLACE": "far"})
    assert (shown.returncode, shown.stderr) == (0, "")
    (tmp_path / "codex-multi-role.yaml").write_text("place: far\n")
    assert console("show", "away", folder=tmp_path).returncode == 0


def test_place_is_named_if_it_has_none(tmp_path: Path) -> None:
    assert "and in a far place." in console("runs", "--place", "far", folder=tmp_path).stderr


def test_no_place_is_asked_without_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.reading.registry._installed", None)  # not even looked up
    assert console("show", "away", "--json", folder=tmp_path).returncode == 2


def test_commands_that_start_a_run_do_not_have_the_option(tmp_path: Path) -> None:
    done = console("fork", "away", "--place", "far", folder=tmp_path)
    assert done.stderr.startswith('error: unknown option "--place"')
