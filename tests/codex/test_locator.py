"""The program of Codex, and the user's home of it, which is tried before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.codex.home import require_user_home
from codex_multi_role.codex.locator import BINARY_VARIABLE, find_codex
from codex_multi_role.errors import CodexNotFound, CodexUnavailable
from tests.support.workspaces import write_program


def test_flag_beats_environment_beats_bundle(tmp_path: Path) -> None:
    flag, variable = (write_program(tmp_path / name, "#!/bin/sh\n") for name in ("one", "two"))
    environment = {BINARY_VARIABLE: str(variable)}
    assert find_codex(flag, environment) == flag
    assert find_codex(None, environment) == variable
    assert find_codex(None, {}).name == "codex"


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_is_named_must_be_an_executable_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(CodexNotFound, match="not an executable file"):
        find_codex(tmp_path / name, {})


def test_home_that_is_not_a_folder_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    with pytest.raises(CodexUnavailable, match=f"^Codex's home {home} cannot be written: Not a directory") as caught:
        require_user_home({"CODEX_HOME": str(home)})
    assert "CODEX_HOME" in caught.value.hint


def test_missing_home_can_be_created(tmp_path: Path) -> None:
    require_user_home({"CODEX_HOME": str(tmp_path / "new" / "home")})
    assert not (tmp_path / "new").exists()
