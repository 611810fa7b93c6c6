"""The user's Codex home is tried before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.codex.home import require_user_home
from codex_multi_role.errors import CodexUnavailable


def test_home_that_is_not_a_folder_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    with pytest.raises(CodexUnavailable, match=f"^Codex's home {home} cannot be written: Not a directory") as caught:
        require_user_home({"CODEX_HOME": str(home)})
    assert "CODEX_HOME" in caught.value.hint


def test_missing_home_can_be_created(tmp_path: Path) -> None:
    require_user_home({"CODEX_HOME": str(tmp_path / "new" / "home")})
    assert not (tmp_path / "new").exists()
