from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.cli.options import KNOWN
from codex_multi_role.cli.settings import settings_of_extensions
from tests.support.console import console

FILE = "codex-multi-role.yaml"


def test_each_setting_is_shown_with_its_value_and_source(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("# ours\ncycles: 5\n\nrun_tests: false\n")
    variables = {"CODEX_MULTI_ROLE_CYCLES": "6", "CODEX_MULTI_ROLE_CONFIG": "a=1 b=2"}
    done = console("config", "show", "--json", folder=tmp_path, variables=variables)
    shown = json.loads(done.stdout)
    assert shown["cycles"] == {"value": 6, "source": "CODEX_MULTI_ROLE_CYCLES"}
    assert shown["run-tests"] == {"value": False, "source": f"{FILE}:4"}
    assert shown["config"] == {"value": ["a=1", "b=2"], "source": "CODEX_MULTI_ROLE_CONFIG"}
    assert shown["flow"] == {"value": "cycles", "source": "default"}
    assert shown.keys() == {
        key.replace("_", "-") for key in (*(each.key for each in KNOWN), *settings_of_extensions(()))
    }


def test_lines_of_a_pyproject_are_shown(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[a]\ncycles = 1\n[tool.codex-multi-role]\ncycles = 5\n[tool.codex-multi-role.input]\nx = 1\n[b]\nflow = 1\n"
    )
    shown = json.loads(console("config", "show", "--json", folder=tmp_path).stdout)
    assert (shown["cycles"]["source"], shown["input"]["source"]) == ("pyproject.toml:4", "pyproject.toml:5")


def test_table_names_the_files_that_were_read(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("cycles: 5\n")
    done = console("config", "show", folder=tmp_path)
    [line] = [line.split() for line in done.stdout.splitlines() if line.startswith("cycles")]
    assert line == ["cycles", "5", f"{FILE}:1"]
    assert f"settings files: {FILE}\n" in done.stderr


def test_without_a_file_it_names_where_one_is_looked_for(tmp_path: Path) -> None:
    done = console("config", "show", folder=tmp_path, variables={"XDG_CONFIG_HOME": str(tmp_path)})
    assert f"none ({FILE}, pyproject.toml or {tmp_path}/codex-multi-role/config.yaml)" in done.stderr


def test_config_folder_that_cannot_be_entered_is_ignored(tmp_path: Path) -> None:
    """As in a container whose user is another one than its home folder's."""
    done = console("config", "show", folder=tmp_path, variables={"XDG_CONFIG_HOME": "/" + "x" * 300})
    assert done.returncode == 0, done.stderr


@pytest.mark.extensions
def test_secrets_are_not_shown(tmp_path: Path) -> None:
    variables = {"CODEX_MULTI_ROLE_TOKEN": "open sesame", "CODEX_MULTI_ROLE_DATABASE_URL": "postgresql://u:hush@h/d"}
    done = console("config", "show", folder=tmp_path, variables=variables)
    assert "[redacted]" in done.stdout
    assert "sesame" not in done.stdout + done.stderr
    assert "hush" not in done.stdout + done.stderr


def test_wrong_value_is_reported_with_its_place(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("cycles: many\n")
    done = console("config", "show", folder=tmp_path)
    assert (done.returncode, f"Invalid value for cycles ({FILE})" in done.stderr) == (2, True)
