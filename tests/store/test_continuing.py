"""A run whose machine is lost continues on another one, in other folders, after its last recorded step."""

from __future__ import annotations

from pathlib import Path

from tests.support.saved_runs import Machines
from tests.support.teams import WRITER, Record, TeamFolder, say

Plays = dict[str, list[Record]]


def writes(path: str, content: str) -> Record:
    return say(f"wrote {path}", files=[{"path": path, "content": content}])


def machines(folder: Path) -> Machines:
    """Two roles, of which one writes a file in each of two cycles."""
    plays: Plays = {"one": [writes("a.txt", "first\n"), writes("sub/b.txt", "second\n")], "two": [say("x"), say("y")]}
    (folder / "here").mkdir()
    return Machines(TeamFolder(folder / "here", {"one": WRITER, "two": {}}, plays), folder / "there")


def test_run_continues_in_other_folders_at_other_paths(tmp_path: Path) -> None:
    both = machines(tmp_path)
    (both.team.workspace / "kept.txt").write_text("was there before\n")
    saved = both.start(last=4, cycles=2)
    assert len(saved) == 4
    both.lose()
    assert both.restore(saved[-1]).attempt == 1
    events: list[Record] = []
    report = both.resume(saved[-1], events.append)
    assert report.totals["turns"] == 4
    files = {path.name: path.read_text() for path in (both.other / "files").rglob("*.txt")}
    assert files == {"kept.txt": "was there before\n", "a.txt": "first\n", "b.txt": "second\n"}
    assert [event["resumed"] for event in events if event["type"] == "role_started"]
    taken = [event["role"] for event in events if event["type"] == "turn_started"]
    assert taken == ["one", "two"]
