"""The shipped flows, recorded from their playbooks and replayed elsewhere: their regression tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.workspaces import write_files

SIGN = "def sign(number):\n    return -1 if number < 0 else 1\n"
FLOWS = {
    "roman-numerals": ([], {}),
    "circle": (["--flow", "plan-solve", "-i", "concurrency=4", "-i", "confirm=true", "--yes"], {}),
    "document": (["--flow", "document", "--yes"], {"sign.py": SIGN}),
}


@pytest.mark.long
@pytest.mark.parametrize("playbook", FLOWS)
def test_shipped_flow_replays_with_same_result(playbook: str, tmp_path: Path) -> None:
    """Only here the shipped flows are recorded and replayed."""
    arguments, files = FLOWS[playbook]
    for folder in ("shop", "again/shop"):  # prompts have the name of the project
        write_files(tmp_path / folder, {"README.md": "A shop.\n", **files})
    record = ["--playbook", playbook, "--workspace", "shop", "--record", "it.ndjson"]
    done = console("run", *record, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = console("--replay", "it.ndjson", "--workspace", "again/shop", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(tmp_path) not in (tmp_path / "it.ndjson").read_text()
