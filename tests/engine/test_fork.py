"""A run forked from a recorded point.

Costs: each case is a run, and one or more that are forked from it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from codex_multi_role import RunReport, answer, fork, run
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import ForkKeywords
from tests.support.forks import STEPS, Parent, builders, forked
from tests.support.teams import ECHO, WRITER, Record, TeamFolder, fan, read, say, with_flow
from tests.support.workspaces import everything, tree

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]


def test_fork_with_new_goal_asks_only_later_steps(parent: Parent) -> None:
    """They get the new goal and the handoffs from before the fork."""
    team, original = parent
    before = everything(original.folder, team.workspace)
    report = forked(team, "judge:2", goal="something else")
    assert report.outcome == "judged", report
    assert team.turns() == [("judge", 2, "completed"), ("build", 3, "completed"), ("judge", 3, "completed")]
    prompt = (report.folder / "judge/turn_002/prompt.txt").read_text()
    assert "something else" in prompt
    assert "reach it" not in prompt
    assert '"summary": "build 2"' in prompt
    assert everything(original.folder, team.workspace) == before
    assert (team.runs / "latest").resolve() == report.folder


def test_fork_inherits_past_records_but_counts_only_own_turns(parent: Parent) -> None:
    team, original = parent
    report = forked(team, "build:3", max_turns=2)
    record = read(report.folder / "run.json")
    assert record["forked_from"] == {"run_id": original.run_id, "step": "build", "visit": 3}
    assert record["goal"] == "reach it"
    assert record["resumed_at"] == []
    assert record["roles_source"] == str(team.folder / "roles/catalog.yaml")  # what people edit, not the parent's copy
    inherited = {path.parent.name for path in report.folder.glob("build/*/turn.json") if read(path).get("inherited")}
    assert inherited == {"turn_001", "turn_002"}
    assert (report.folder / "build/turn_002/changes.patch").is_file()
    assert sorted(path.name for path in (report.folder / "checks").iterdir()) == ["chores.1", "chores.2", "chores.3"]
    assert report.totals["turns"] == 2
    own = [read(report.folder / name / "turn_003/turn.json")["tokens"]["input"] for name in ("build", "judge")]
    assert report.totals["input_tokens"] == sum(own)
    history = read(report.folder / "controller_state.json")["history"]
    assert [entry["handoff"]["summary"] for entry in history] == [
        *("plan 1", "build 1", "judge 1", "build 2", "judge 2", "build 3", "judge 3")
    ]
    assert [event["type"] for event in team.events][:2] == ["run_started", "run_forked"]
    assert not team.events[0]["resumed"]


@pytest.fixture
def guarded(tmp_path: Path) -> TeamFolder:
    """A team after a run of a fan-out and a writer, whose flow protects a file of the workspace."""
    writes = [say(files=[{"path": "a.txt", "content": "1\n"}])]
    team = TeamFolder(tmp_path, {"solver": {}, "build": WRITER}, {"solver": [ECHO, ECHO], "build": writes})
    (team.workspace / "kept.txt").write_text("kept\n")
    check = {"id": "look", "check": "command", "with": {"argv": ["cat", "kept.txt"], "expect": [0]}}
    with_flow(team, {"protect": ["kept.txt"], "steps": [fan(["x"]), {"ask": "build"}, check]})
    assert team.run(flow="own").exit_code == 0
    return team


REPLAYS = "codex_multi_role.extensions.replays"


@pytest.mark.sample("fork")
@pytest.mark.parametrize("start", ["fork", "task", pytest.param("rerun", marks=pytest.mark.extensions)])
def test_protected_files_of_restored_workspace_stay(guarded: TeamFolder, start: str) -> None:
    """They are protected as they are restored, and not as in the empty folder that the new run starts with."""
    guarded.events.clear()
    runs, on_event = guarded.runs, guarded.events.append
    again: dict[str, Callable[[], RunReport]] = {
        "fork": lambda: fork("latest", runs_dir=runs, start="build", on_event=on_event),
        "task": lambda: fork("latest", task="solve.1.0", runs_dir=runs, on_event=on_event),
        "rerun": lambda: import_module(REPLAYS).rerun("latest", runs_dir=runs, on_event=on_event),
    }
    report = again[start]()
    workspace = Path(read(report.folder / "run.json")["workspace"])
    assert report.exit_code == 0, report
    assert not guarded.of_type("protected_restored")
    assert tree(workspace) == {"kept.txt": "kept\n", "a.txt": "1\n"}


AT_FIRST = {".gitignore": "*.log\n", "tool.sh": "#!/bin/sh\n", "old.txt": "old\n", "b/deep.txt": "1"}
AFTER_CHORES = {".gitignore": "*.log\n", "tool.sh": "#!/bin/sh\n", "b/deep.txt": "2\n", "link": "a.txt"}


@pytest.mark.parametrize(
    ("start", "files", "executable", "elsewhere"),
    [
        ("plan", AT_FIRST, False, "deep/er"),
        ("judge:2", {**AFTER_CHORES, "a.txt": "2\n", "new1.txt": "", "new2.txt": ""}, True, ""),
    ],
)
def test_workspace_is_as_it_was_then(
    parent: Parent, tmp_path: Path, start: str, files: dict[str, str], executable: bool, elsewhere: str
) -> None:
    """Beside the original one, or where the user says."""
    team, original = parent
    shutil.rmtree(team.workspace)
    changes: ForkKeywords = {"max_turns": 1}  # of what comes after, only a turn that changes nothing
    report = forked(team, start, **{**changes, "workspace": tmp_path / elsewhere} if elsewhere else changes)
    assert report.exit_code == 5
    workspace = tmp_path / elsewhere if elsewhere else team.folder / f"workspace.fork-{report.run_id[-8:]}"
    assert tree(workspace) == files
    assert bool((workspace / "tool.sh").stat().st_mode & 0o111) == executable
    assert read(report.folder / "run.json")["workspace"] == str(workspace)
    [note] = [event["message"] for event in team.of_type("run_forked")]
    assert original.run_id in note
    assert "that git ignores" in note
    assert str(workspace) in note


def test_another_role_file(parent: Parent) -> None:
    team, _ = parent
    team.write_catalog(judge={"prompt_text": "Judge more mildly.", "behaviors": {"can_finish": True}})
    team.plays["judge"][1] = say("judge 2", status="DONE")
    team.write_plays()
    roles = team.folder / "roles"
    report = forked(team, "judge:2", roles=roles, playbook=str(team.playbook))
    assert (report.outcome, report.exit_code) == ("done", 0)
    assert "Judge more mildly." in (report.folder / "judge/turn_002/prompt.txt").read_text()
    assert (report.folder / "catalog/catalog.yaml").read_text() == (roles / "catalog.yaml").read_text()


def test_another_flow_that_leads_the_same_way_up_to_there(parent: Parent) -> None:
    team, _ = parent
    roles = team.folder / "roles"
    other = [*STEPS[:3], {"ask": "judge", "next": [{"end": "at_once"}]}]
    (roles / "flows/other.yaml").write_text(yaml.safe_dump({"name": "other", "steps": other}))
    report = forked(team, "judge:1", flow="other", roles=roles)
    assert (report.outcome, len(team.turns())) == ("at_once", 1)


def test_fork_of_visit_started_in_two_sessions_uses_first_start(tmp_path: Path) -> None:
    """The fork starts before any work of that visit, so changes made between the sessions are not in it."""
    team = builders(tmp_path, STEPS[1:])
    good = team.plays["build"][1]
    team.plays["build"][1] = {"fault": {"status": 400}}
    team.write_plays()
    team.run(flow="own")
    (team.workspace / "meddled.txt").write_text("between the two sessions")
    team.plays["build"][1] = good
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).outcome == "judged"
    report = forked(team, "build:2", max_turns=1)
    assert [turn[:2] for turn in team.turns()] == [("build", 2)]
    assert not (Path(read(report.folder / "run.json")["workspace"]) / "meddled.txt").exists()


def test_run_that_is_being_worked_on(tmp_path: Path) -> None:
    team = builders(tmp_path, STEPS[1:])
    forks: list[RunReport] = []

    def fork_meanwhile(event: Record) -> None:
        if (event["type"], event.get("role"), event.get("turn")) == ("turn_started", "judge", 2):
            forks.append(forked(team, "judge:2"))

    assert run(team.options(flow="own"), fork_meanwhile).outcome == "judged"
    assert [each.outcome for each in forks] == ["judged"]
    assert [turn[0] for turn in team.turns()] == ["judge", "build", "judge"]


def test_what_was_decided_and_fanned_out_before_stays(tmp_path: Path) -> None:
    steps: list[Record] = [
        {"id": "many", "ask": "plan", "for_each": {"items": ["x", "y", "z"], "concurrency": 2}},
        {"id": "sure", "review": "Build {{ steps.many.results | length }}?"},
        {"ask": "build", "next": [{"when": "steps.sure.comment == 'go'", "end": "built"}, {"end": "not_sure"}]},
    ]
    team = builders(tmp_path, steps)
    team.write_plays(plan=[say(f"plan {n}") for n in range(3)])
    assert team.run(flow="own").exit_code == 4
    answer("latest", runs_dir=team.runs, approved=True, comment="go")
    assert team.resume().outcome == "built"
    report = forked(team, "build")
    assert (report.outcome, [turn[0] for turn in team.turns()]) == ("built", ["build"])
    assert read(report.folder / "reviews/sure.1.json")["answer"]["comment"] == "go"
    again = forked(team, "sure")
    assert (again.exit_code, team.turns()) == (4, [])
    assert read(again.folder / "reviews/sure.1.json")["answer"] is None


def test_workspace_that_nothing_could_change_is_used_as_it_is(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("one"), say("two", files=[{"path": "x", "content": ""}])]})
    team.run(cycles=2)
    assert forked(team, "team:2").outcome == "cycles_used_up"
    assert read(team.runs / "latest/run.json")["workspace"] == str(team.workspace)
    assert "in its current state" in team.of_type("run_forked")[0]["message"]
    team.write_catalog(one=WRITER)
    with pytest.raises(UsageError, match="nothing in the run could change it, but the fork can"):
        forked(team, "team:2", roles=tmp_path / "roles")
    copy = shutil.copytree(team.workspace, tmp_path / "copy")
    assert forked(team, "team:2", roles=tmp_path / "roles", workspace=copy).outcome == "cycles_used_up"
    assert ([*team.workspace.iterdir()], [path.name for path in copy.iterdir()]) == ([], ["x"])
