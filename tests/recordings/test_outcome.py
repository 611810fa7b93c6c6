"""What a run came to, whatever lies in its workspace."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

from codex_multi_role.definitions import load_definitions
from codex_multi_role.options import RunReport
from codex_multi_role.recordings.outcome import outcome_of, workspace_tree
from codex_multi_role.run_folder import RunFolder
from tests.teams import TeamFolder


def outcome_after(folder: Path, *commands: str) -> dict[str, Any]:
    """Of a run in which ``commands`` changed the workspace, and which is recorded there."""
    team = TeamFolder(folder, {"one": {}}, {})
    (team.workspace / "was.txt").write_text("was")
    definitions = load_definitions(team.options(record=team.workspace / "own.ndjson"))
    run = RunFolder.create(team.runs, None)
    began_with = workspace_tree(definitions, run)
    for command in ("touch own.ndjson", *commands):
        subprocess.run(["sh", "-c", command], cwd=team.workspace, check=True, timeout=20)
        workspace_tree(definitions, run)  # as a turn does
    report = RunReport(run.run_id, run.path, "ended", "cycles_used_up", "", 1, "", {})
    return outcome_of(report, definitions, run, began_with)


def test_a_link_counts_by_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    files = outcome_after(tmp_path, "ln -s loop loop", "ln -s ../outside out")["files"]
    assert files == {"loop": sha256("loop"), "out": sha256("../outside")}


def test_what_can_be_read_for_ever_is_not_read(tmp_path: Path) -> None:
    files = outcome_after(tmp_path, "echo now > was.txt", "rm was.txt && mkfifo was.txt")["files"]
    assert files == {"was.txt": None}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
