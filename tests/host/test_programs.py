"""Programs are not taken from where models write."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codex_multi_role.host import programs
from codex_multi_role.host.programs import exclude_from_path, program_path


def test_folder_that_no_longer_exists_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_excluded", set())
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        exclude_from_path(folder)
        assert program_path({"PATH": f"{folder}/bin:/usr/bin"}) == "/usr/bin"
        if number:
            shutil.rmtree(folder)
    exclude_from_path(tmp_path / "0")
    assert programs._excluded == {tmp_path / "0"}
