"""Parallel writers in copies of the workspace, merged back; a duel of which only the winner is merged.

Costs: each case is a run whose writers work in git worktrees."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.workspace.git import RecordedGit
from codex_multi_role.workspace.git_settings import FOLDER
from codex_multi_role.workspace.manifest import Manifest
from tests.support.console import console
from tests.support.teams import ECHO, WRITER, Record, TeamFolder, read, say, with_flow
from tests.support.tests_here import tests_here
from tests.support.workspaces import commit_all, git, write_program

__all__ = ["tests_here"]

pytestmark = pytest.mark.usefixtures("scripted_codex")


def writes(path: str, content: str, **more: Any) -> Record:
    return say(files=[{"path": path, "content": content}], **more)


def writers(folder: Path, plays: list[Record], steps: list[Record]) -> TeamFolder:
    team = TeamFolder(folder, {"writer": WRITER}, {"writer": plays})
    (team.workspace / "shared.txt").write_text("as it was\n")
    return with_flow(team, {"steps": steps})


def write_step(**more: object) -> Record:
    step = {"id": "write", "ask": "writer", "isolate": "worktree", "for_each": {"items": ["a", "b"], "concurrency": 2}}
    return {**step, **more}


def test_each_writer_has_a_copy_and_both_come_back(tmp_path: Path) -> None:
    merged = "steps.write.results | map(attribute='merge.status') | list == ['merged', 'merged']"
    step = write_step(next=[{"when": merged, "end": "both"}, {"end": "not_both", "exit": 1}])
    team = writers(tmp_path, [writes("a.txt", "A"), writes("b.txt", "B")], [step])
    commit_all(team.workspace)
    (team.workspace / "uncommitted.txt").write_text("seen in every copy\n")
    report = team.run(flow="own")
    assert report.outcome == "both", report
    names = sorted(path.name for path in team.workspace.iterdir() if path.name != ".git")
    assert names == ["a.txt", "b.txt", "shared.txt", "uncommitted.txt"]
    turns = [read(path) for path in report.folder.glob("writer*/turn_*/applied_files.json")]
    assert len(turns) == 2


@pytest.mark.usefixtures("tests_here")
@pytest.mark.parametrize("merge", ["all", "passed"])
def test_item_that_breaks_a_test_is_nowhere_green(tmp_path: Path, merge: str) -> None:
    """It is completed, with what speaks against it; ``passed`` leaves its copy, and the run's own tests pass."""
    step = write_step(
        isolate={"merge": merge}, next=[{"when": "steps.write.results[1].merge.status == 'left'", "end": "left"}]
    )
    team = writers(tmp_path, [writes("a.txt", "A"), writes("value.txt", "2")], [step])
    (team.workspace / "value.txt").write_text("1")
    test = "def test_value():\n    from pathlib import Path\n"
    test += "    assert Path(__file__).with_name('value.txt').read_text() == '1'\n"
    (team.workspace / "test_value.py").write_text(test)
    report = team.run(flow="own", run_tests=True)
    states = read(report.folder / "states.json")["items"]
    assert [(each["state"], each["reason"]) for each in states] == [("COMPLETED", ""), ("COMPLETED", "1 new failure")]
    assert (team.workspace / "value.txt").read_text() == {"all": "2", "passed": "1"}[merge]
    assert (report.outcome, report.exit_code) == {"all": ("tests_failed", 1), "passed": ("left", 0)}[merge]
    shown = console("show", "latest", folder=tmp_path).stdout
    assert "■ write 2/2: " in shown
    assert "    ■ b: completed, 1 new failure" in shown
    watched = console("watch", "latest", folder=tmp_path).stderr
    assert "task b: COMPLETED, 1 new failure" in watched
    assert ("warning: write.1.1 is not merged: 1 new failure; copy: " in watched) == (merge == "passed")
    for page in report.folder.glob("report.html"):  # that extension may be absent
        assert page.read_text().count('<span class="unseen">stopped or flawed: </span>b <small>1 new failure') == 1


def test_git_too_old_to_merge_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = writers(tmp_path, [], [write_step()])
    old = write_program(tmp_path / "old" / "git", "#!/bin/sh\necho git version 2.38.1\n")
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    with pytest.raises(UsageError, match=r"git 2\.38\.1 is too old to merge copies of the workspace"):
        team.run(flow="own")
    assert not team.runs.exists()


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_retry_in_copy_starts_clean_despite_parallel_work(tmp_path: Path) -> None:
    """Found by the endurance tests: changes of the first try stayed, as if other roles worked in the copy."""
    patch = {"patch": "*** Begin Patch\n*** Update File: shared.txt\n@@\n as it was\n+once\n*** End Patch"}
    fails_first = {"attempts": [{"steps": [patch, {"fault": {"status": 500}}]}, {"steps": [patch, say()]}]}
    slow = {"json": {"summary": "slow"}, "delay_seconds": 1.5}
    team = writers(tmp_path, [fails_first, slow], [write_step()])
    team.write_catalog(writer={"prompt_flags": {"allow_write": True}})
    assert team.run(flow="own").outcome == "success"
    assert (team.workspace / "shared.txt").read_text() == "as it was\nonce\n"


def clashing(folder: Path, **more: object) -> TeamFolder:
    step = write_step(**more)
    return writers(folder, [writes("shared.txt", "one\n"), writes("shared.txt", "two\n")], [step])


@pytest.mark.parametrize("isolated", ["call", "step"])
def test_each_try_of_a_call_has_copies_of_its_own(tmp_path: Path, isolated: str) -> None:
    """The second try does not find what the first one left in the copy, and merges what it does itself."""
    copy = {"isolate": "worktree"}
    first = {"id": "look", "check": "command", "with": {"argv": ["test", "!", "-e", "first.txt"]}}
    again = {"id": "look", "check": "command", "with": {"argv": ["test", "-e", "second.txt"]}}
    call = {"id": "c", "call": "inner", "retry": {"attempts": 2, "backoff_seconds": 0}}
    plays = [writes("first.txt", "1"), writes("second.txt", "2")]
    team = writers(tmp_path, plays, [{**call, **(copy if isolated == "call" else {})}])
    write = {"id": "write", "ask": "writer", **(copy if isolated == "step" else {})}
    with_flow(team, {"steps": [write, first if isolated == "call" else again]}, "inner")
    report = team.run(flow="own")
    assert report.exit_code == 0, report
    written = {path.name for path in team.workspace.glob("*.txt")} - {"shared.txt"}
    assert written == ({"second.txt"} if isolated == "call" else {"first.txt", "second.txt"})
    started = [event["step"] for event in team.of_type("step_started")]
    assert started == ["c", "c.1/write", "c.1/look", "c.1/try-2/write", "c.1/try-2/look"]
    merged = [event["copy"] for event in team.of_type("copy_merged")]
    assert merged == (["c.1"] if isolated == "call" else ["c.1/write.1", "c.1/try-2/write.1"])


def test_item_whose_copy_cannot_be_merged_has_failed(tmp_path: Path) -> None:
    """The other items are merged all the same, and the message names the path and the copy."""
    team = clashing(tmp_path)
    report = team.run(flow="own")
    assert (report.outcome, report.exit_code) == ("merge_conflicts", 3)
    assert "write.1.1 could not be merged: shared.txt (both modified); copy: " in report.reason
    assert read(report.folder / "run.json")["suggestion"] == "fork RUN --from write:1"
    (copy,) = re.findall(r"; copy: (\S+)$", report.reason)
    assert (Path(copy) / "shared.txt").read_text() == "two\n"
    assert (team.workspace / "shared.txt").read_text() == "one\n"


def test_conflict_that_is_skipped_can_be_routed_on(tmp_path: Path) -> None:
    clash = "steps.write.results[1].merge.status == 'conflicts'"
    routes = [{"when": clash, "end": "clash"}, {"end": "no_clash", "exit": 1}]
    team = clashing(tmp_path, next=routes, for_each={"items": ["a", "b"], "concurrency": 2, "allow": ["failed"]})
    report = team.run(flow="own")
    assert report.outcome == "clash"
    assert (team.workspace / "shared.txt").read_text() in ("one\n", "two\n")
    merges = team.of_type("copy_merged")
    assert [event["status"] for event in merges] == ["merged", "conflicts"]
    (warning,) = team.of_type("warning")
    assert "write.1.1 could not be merged: shared.txt (both modified); copy: " in warning["message"]
    assert merges[1]["conflicts"][0]["path"] == "shared.txt"


def test_of_a_duel_only_the_winner_is_merged_and_the_loser_kept(tmp_path: Path) -> None:
    steps: list[Record] = [
        write_step(isolate={"merge": "none"}),
        {
            "id": "best",
            "check": "choose",
            "with": {"candidates": "{{ steps.write.results }}", "by": [{"key": "score", "prefer": "highest"}]},
        },
        {"id": "take", "check": "merge", "with": {"copies": ["{{ steps.best.winner.copy }}"]}},
    ]
    plays = [writes("shared.txt", "low\n", score=1), writes("shared.txt", "high\n", score=2)]
    team = writers(tmp_path, plays, steps)
    report = team.run(flow="own")
    assert report.outcome == "success", report
    assert (team.workspace / "shared.txt").read_text() == "high\n"
    copies = [path.read_text() for path in Manifest(report.folder / "worktrees").place.rglob("shared.txt")]
    assert "low\n" in copies


def traces(repository: Path) -> list[object]:
    """What git knows of worktrees, branches and settings, and the names in its folder."""
    questions = ["worktree list --porcelain", "branch -a", "for-each-ref", "config --local --list", "stash list"]
    names = sorted({path.name for path in (repository / ".git").iterdir()} - {FOLDER})
    worktrees = sorted((repository / ".git/worktrees").glob("**/*"))
    return [*(git(repository, *question.split()) for question in questions), names, worktrees]


ALONE: Record = {"id": "alone", "ask": "writer", "isolate": "worktree"}


def merging(folder: Path) -> TeamFolder:
    """Copies of a step, of items, of a called flow, within another one, and one that a check merges."""
    calls: list[Record] = [
        ALONE,
        write_step(),
        {"id": "whole", "call": "plain", "isolate": "worktree"},
        {"id": "parts", "call": "inner"},
        write_step(
            id="race",
            isolate={"merge": "none"},
            for_each={
                "items": ["a", "b"],  # the first one wins
                "until": "results | selectattr('status', 'eq', 'done') | list | length > 0",
            },
        ),
        {"id": "take", "check": "merge", "with": {"copies": ["{{ steps.race.results[0].copy }}"]}},
    ]
    team = writers(folder, [writes(f"{number}.txt", "new") for number in range(20)], calls)
    with_flow(team, {"steps": [{"ask": "writer"}]}, "plain")
    with_flow(team, {"steps": [{"id": "deep", "ask": "writer", "isolate": "worktree"}]}, "inner")
    commit_all(team.workspace)
    return team


def test_merged_copies_leave_nothing_in_the_repository_after_a_success(tmp_path: Path) -> None:
    """What they went through stays in the run folder."""
    team = merging(tmp_path)
    before = traces(team.workspace)
    report = team.run(flow="own")
    assert report.outcome == "success", report
    assert traces(team.workspace) == before
    merged = [copy for copy in Manifest(report.folder / "worktrees") if copy.state == "merged"]
    keys = ["alone.1", "write.1.0", "write.1.1", "whole.1", "parts.1/deep.1", "race.1.0"]
    assert sorted(copy.key for copy in merged) == sorted(keys)
    for copy in merged:
        snapshots = RecordedGit(report.folder / "worktrees" / copy.key / "snapshots.git", tmp_path)
        assert snapshots.run("diff-tree", "-r", "--name-only", copy.base, copy.theirs).stdout


def test_after_a_failure_gc_removes_them(tmp_path: Path) -> None:
    """Steps of a resumed run may read them, and what could not be merged is there to be looked at."""
    fails: Record = {"id": "last", "check": "command", "with": {"argv": ["test", "-e", "made"]}}
    team = writers(tmp_path, [writes("1.txt", "new")], [ALONE, fails])
    commit_all(team.workspace)
    before = traces(team.workspace)
    assert team.run(flow="own").exit_code == 1
    assert "alone.1" in str(traces(team.workspace))
    console("gc", folder=tmp_path).check_returncode()
    assert traces(team.workspace) == before


NAME = "{{ (prompt | string).split('ITEM ')[1].split('.')[0] }}"
WRITE: Record = {"id": "write", "ask": "writer", "prompt": "ITEM {{ inputs.name }}."}


def calling(folder: Path, inner: Record, **more: object) -> TeamFolder:
    """A team whose flow calls one with the step ``inner`` for each of two items, of which it writes a file."""
    file = {"path": f"{NAME}.txt", "content": "written\n"}
    team = TeamFolder(folder, {"writer": WRITER}, {"writer": [{"json": {**ECHO["json"], "files": [file]}}] * 2})
    with_flow(team, {"inputs": {"name": {"type": "string"}}, "steps": [inner]}, "inner")
    call = {
        "id": "each",
        "call": "inner",
        "with": {"name": "{{ item }}"},
        "for_each": {"items": ["a", "b"], "concurrency": 2},
    }
    return with_flow(team, {"steps": [{**call, "isolate": "worktree", **more}]})


def test_called_flows_work_in_copies(tmp_path: Path) -> None:
    team = calling(tmp_path, WRITE)
    report = team.run(flow="own")
    assert report.outcome == "success", report
    assert sorted(path.name for path in team.workspace.iterdir()) == ["a.txt", "b.txt"]
    assert [event["paths"] for event in team.of_type("copy_merged")] == [["a.txt"], ["b.txt"]]
    turns = [read(path)["unit"] for path in report.folder.glob("writer*/turn_*/turn.json")]
    assert sorted(turns) == ["each.1.0/write.1", "each.1.1/write.1"]


@pytest.mark.parametrize(
    ("inner", "keys", "problem"),
    [
        ({**WRITE, "isolate": "worktree"}, {}, "isolate: the flow inner has steps in copies of their own"),
        (WRITE, {"place": "workers"}, "step each: items no longer run on other machines; many goals can"),
    ],
)
def test_calls_that_cannot_work_are_refused(tmp_path: Path, inner: Record, keys: Record, problem: str) -> None:
    team = calling(tmp_path, inner, **keys)
    with pytest.raises(DefinitionError, match=problem):
        team.run(flow="own")
    assert not team.runs.exists()
