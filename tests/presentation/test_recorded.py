"""What a run's folder shows of it, whatever wrote it and whenever it was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_multi_role.presentation.recorded import changed_files, read_tests
from codex_multi_role.run_folder import RunFolder, TurnFolder


def leave_turn(folder: RunFolder, *handed_in: str, **result: Any) -> TurnFolder:
    turn = TurnFolder.create(folder, "writer")
    turn.write_result(result)
    if handed_in:
        skipped = {"path": "/etc/passwd", "status": "SKIPPED", "reason": "unsafe path"}
        turn.write_files([skipped, *({"path": path, "status": "WROTE"} for path in handed_in)])
    return turn


def test_changed_files_are_named_once_whoever_wrote_them(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "run")
    leave_turn(folder, "theirs.py", changed_paths=["theirs.py"], inherited=True)
    leave_turn(folder, changed_paths=["b.py", "ü.py"], status="failed")
    leave_turn(folder, "./b.py", *(f"many/{number}.py" for number in range(30)), changed_paths=["a.py"])
    leave_turn(folder, changed_paths=["taken_back.py"]).undone_path.write_bytes(b"")
    TurnFolder.create(folder, "writer")
    assert changed_files(folder, {}) == ["b.py", "ü.py", "a.py", *(f"many/{number}.py" for number in range(30))]
    assert changed_files(folder, {"files": [{"path": "by_a_check.md", "added": 1, "removed": 0}]}) == ["by_a_check.md"]


def test_tests_are_in_order_beyond_a_thousand_too(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "run")
    for name in ("1000", "999", "002", "notes"):
        (folder.path / "tests" / name).mkdir(parents=True)
        (folder.path / "tests" / name / "result.json").write_text("{}")
    assert [result["number"] for result in read_tests(folder)] == [2, 999, 1000]
