from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.codex.locator import BINARY_VARIABLE, find_codex
from codex_multi_role.errors import CodexNotFound


def executable(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_flag_beats_environment_beats_bundle(tmp_path: Path) -> None:
    flag, variable = executable(tmp_path / "one"), executable(tmp_path / "two")
    environment = {BINARY_VARIABLE: str(variable)}
    assert find_codex(flag, environment) == flag
    assert find_codex(None, environment) == variable
    assert find_codex(None, {}).name == "codex"


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_is_named_must_be_an_executable_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(CodexNotFound, match="not an executable file"):
        find_codex(tmp_path / name, {})
