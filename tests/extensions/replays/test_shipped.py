"""The shipped flows, recorded from their playbooks and replayed elsewhere: their regression tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console

SIGN = "def sign(number):\n    return -1 if number < 0 else 1\n"
FLOWS = {
    "roman-numerals": ([], {}),
    "circle": (["--flow", "plan-solve", "-i", "concurrency=4", "-i", "confirm=true", "--yes"], {}),
    "document": (["--flow", "document", "--yes"], {"sign.py": SIGN}),
}


@pytest.mark.long
@pytest.mark.parametrize("playbook", FLOWS)
def test_shipped_flow_replays_with_same_result(playbook: str, tmp_path: Path) -> None:
    arguments, files = FLOWS[playbook]
    shop, recordings = tmp_path / "shop", tmp_path / "recordings"
    for folder in (shop, recordings / playbook):
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    record = ["--playbook", playbook, "--workspace", "shop", "--record", f"recordings/{playbook}.ndjson"]
    done = console("run", *record, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = console("replay-test", "recordings", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(tmp_path) not in (recordings / f"{playbook}.ndjson").read_text()
