"""A resumed run may have other inputs, as long as nothing that it has recorded depends on them, and one folder.

Costs: each case is a run, and its resumption with something else.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import resume
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import ResumeKeywords
from tests.support.console import console
from tests.support.teams import Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

LOOK: Record = {"check": "command", "with": {"argv": ["echo", "{{ inputs.word }}"], "json": False}}
INPUTS: Record = {"most": 1, "word": "a", "files": ["x", "y"], "at_once": 1}
AGAIN: list[Record] = [{"when": "steps.one.visits < inputs.most", "to": "one"}, {"end": "timeout"}]
LOOP: list[Record] = [{"when": "steps.one.visits < inputs.most", "to": "one"}]
INNER: Record = {"inputs": {"most": 1}, "steps": [{"ask": "one", "limits": {"visits": 9}, "next": AGAIN}]}
EACH: Record = {"for_each": {"items": "{{ inputs.files }}", "max_items": 5, "concurrency": "{{ inputs.at_once }}"}}
CALL: Record = {"id": "rounds", "call": "inner", "with": {"most": "{{ inputs.most }}"}}


def team_with(folder: Path, *steps: Record) -> TeamFolder:
    team = TeamFolder(folder, {"one": {}}, {"one": [say(f"answer {number}") for number in range(20)]})
    with_flow(team, INNER, "inner")
    return with_flow(team, {"inputs": INPUTS, "steps": [{"limits": {"visits": 9}, **step} for step in steps]})


@pytest.mark.real
@pytest.mark.parametrize(
    ("steps", "changes", "unit", "start"),
    [
        ([CALL | EACH, {"id": "figures", **LOOK}], {"most": 3}, "figures.1", "rounds:1"),
        ([{"ask": "one", "prompt": "Say {{ inputs.word }}."}], {"word": "b"}, "one.1", "one:1"),
        ([{"ask": "one", **EACH}], {"files": ["x"]}, "one.1.1", "one:1"),
        ([{"ask": "one", "next": LOOP}, {"id": "figures", **LOOK}], {"most": 1}, "one.2", "one:1"),
    ],
)
def test_input_that_recorded_work_depends_on_cannot_change(
    tmp_path: Path, steps: list[Record], changes: dict[str, Any], unit: str, start: str
) -> None:
    """Before anything is paid: the rest of what was recorded would be of the old input."""
    team = team_with(tmp_path, *steps)
    team.run(flow="own", inputs={"most": 2} if changes == {"most": 1} else {})
    before = (team.runs / "latest/run.json").read_text()
    with pytest.raises(UsageError, match=rf"{next(iter(changes))} cannot be changed.* {unit} depends on it") as caught:
        team.resume(inputs=changes)
    assert f"--from {start} --input " in caught.value.hint
    assert team.turns() == []
    assert (team.runs / "latest/run.json").read_text() == before


def test_suggested_fork_has_the_changed_input(tmp_path: Path) -> None:
    team = team_with(tmp_path, {"ask": "one", **EACH})
    team.run(flow="own")
    with pytest.raises(UsageError) as caught:
        team.resume(inputs={"files": ["z"]})
    done = console(*shlex.split(caught.value.hint.split("`")[1])[1:], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read(team.runs / "latest/run.json")["inputs"]["files"] == ["z"]


@pytest.mark.real
def test_option_of_a_missing_extension_is_refused_by_name(tmp_path: Path) -> None:
    """It may decide where the journal of the run is, or who answers: the run must not continue without."""
    team = team_with(tmp_path, {"ask": "one"})
    team.run(flow="own")
    path = (team.runs / "latest").resolve() / "run.json"
    record = read(path)
    path.write_text(json.dumps({**record, "options": {**record["options"], "from_elsewhere": "a"}}))
    done = console("resume", "--cycles", "2", folder=tmp_path)
    assert done.returncode == 2
    assert "the run has an option that no installed extension adds: from_elsewhere" in done.stderr
    assert console("show", folder=tmp_path).returncode == 0


def test_input_that_only_leads_further_can_change(tmp_path: Path) -> None:
    team = team_with(tmp_path, {"ask": "one", "next": [*LOOP, {"end": "timeout", "exit": 1}]})
    assert team.run(flow="own").exit_code == 1
    assert team.resume(inputs={"most": 3, "word": "b"}).exit_code == 1
    assert [turn for _, turn, _ in team.turns()] == [2, 3]


def test_items_that_need_more_journal_slots_are_refused(tmp_path: Path) -> None:
    """Items keep the slots they started with. No turn is paid for that could not be recorded."""
    team = team_with(tmp_path, CALL | EACH)
    assert team.run(flow="own", max_turns=1).exit_code == 5
    report = team.resume(inputs={"most": 3}, max_turns=None)
    assert (report.exit_code, team.turns()) == (2, [])
    assert "--from rounds:1" in report.hint
    assert team.resume(inputs={"most": 1}).outcome == "success"


def rounds_then_figures(most: int, word: str = "a") -> Record:
    again = {"when": f"steps.one.visits < {most}", "to": "one"}
    look = {"check": "command", "with": {"argv": ["echo", word], "json": False}}
    return {"steps": [{"ask": "one", "limits": {"visits": 9}, "next": [again]}, {"id": "figures", **look, "next": END}]}


END: list[Record] = [{"when": "cycles > 2", "to": "one"}, {"end": "timeout", "exit": 1}]


@pytest.mark.real
@pytest.mark.parametrize(("most", "word", "unit"), [(3, "a", "figures.1"), (0, "a", "")])
def test_flow_that_recorded_work_depends_on_cannot_change(tmp_path: Path, most: int, word: str, unit: str) -> None:
    """A flow is edited and given to `resume`: before anything is paid, and with the command that does it."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(f"answer {number}") for number in range(9)]})
    with_flow(team, rounds_then_figures(1)).run(flow="own")
    with_flow(team, rounds_then_figures(most, word))
    if not unit:
        assert team.resume(roles=tmp_path / "roles").outcome == "timeout"
        return
    with pytest.raises(UsageError, match=rf"the flow own cannot be changed.* {unit} depends on it") as caught:
        team.resume(roles=tmp_path / "roles")
    assert team.turns() == []
    assert team.resume().outcome == "timeout"  # with its own copy of the flow
    done = console(*shlex.split(caught.value.hint.split("`")[1])[1:], folder=tmp_path)
    assert done.returncode == 1, done.stderr
    text = (team.runs / "latest/checks/figures.1/result.json").read_text()
    assert word in text


def test_changed_flow_and_roles_stay_for_the_next_resume(tmp_path: Path) -> None:
    """The part of the flow that was not reached yet may change."""
    ways: list[Record] = [{"when": "steps.one.visits < 2", "to": "one"}, {"end": "timeout", "exit": 1}]
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(f"answer {number}") for number in range(9)]})
    with_flow(team, {"steps": [{"ask": "one", "limits": {"visits": 9}, "next": ways}]}).run(flow="own")
    ways[0]["when"] = "steps.one.visits < 4"
    with_flow(team, {"steps": [{"ask": "one", "limits": {"visits": 9}, "next": ways}]})
    team.roles["one"]["prompt_text"] = "Do it in verse."
    team.write_catalog()
    assert team.resume(roles=tmp_path / "roles", max_turns=3).exit_code == 5
    (tmp_path / "roles/catalog.yaml").unlink()
    assert team.resume(max_turns=None).outcome == "timeout"
    assert [turn for _, turn, _ in team.turns()] == [4]
    told, known = ((team.runs / f"latest/one/turn_{turn:03d}/prompt.txt").read_text() for turn in (3, 4))
    assert ("Do it in verse." in told, "still apply" in known) == (True, True)


@pytest.mark.parametrize(
    ("keys", "refused"),
    [
        ({"max_steps": 3}, True),
        ({"prompt_text": "Do it in verse."}, False),
    ],
)
def test_team_keeps_what_its_journal_rests_on(tmp_path: Path, keys: Record, refused: bool) -> None:
    """With more steps for one role, the answers of the next would not be found, and paid for again."""
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say(status="DONE")] * 2, "two": [say()] * 2})
    team.run()
    team.roles["one"] |= keys
    team.write_catalog()
    if refused:
        with pytest.raises(UsageError, match="a resumed run keeps its roles"):
            team.resume(roles=tmp_path / "roles", cycles=2)
    else:
        team.resume(roles=tmp_path / "roles", cycles=2)
    assert len(team.turns()) == (0 if refused else 2)


SKIPPED: list[Record] = [
    {"ask": "one"},
    {"id": "two", "ask": "one", "prompt": "{{ roles.one.brief }}", "allow": ["failed"]},
]
TOO_SHORT: Record = {"id": "three", "ask": "one", "prompt": "{{ inputs.word[9] }}"}


def test_skipped_step_without_its_values_hinders_no_change(tmp_path: Path) -> None:
    """Nor a second resume: its recorded failure is found again."""
    team = team_with(tmp_path, *SKIPPED, TOO_SHORT)
    assert team.run(flow="own").exit_code == 3
    assert team.resume(inputs={"word": "b", "most": 7}).outcome == "wrong_value"
    assert team.turns() == []
    assert [each["step"] for each in team.of_type("step_started")] == ["three"]


@pytest.mark.real
def test_input_of_work_after_a_skipped_step_cannot_change(tmp_path: Path) -> None:
    team = team_with(tmp_path, *SKIPPED, {"id": "figures", **LOOK}, TOO_SHORT)
    assert team.run(flow="own").exit_code == 3
    with pytest.raises(UsageError, match=r"word cannot be changed.* figures\.1 depends on it"):
        team.resume(inputs={"word": "b"})


def ran(folder: Path, runs: str) -> TeamFolder:
    """A run whose folder of runs is ``runs``, relative to the workspace."""
    team = TeamFolder(folder, {"one": {}}, {"one": [say("first"), say("second"), say("third")]})
    assert team.run(runs_dir=team.workspace / runs).outcome == "cycles_used_up"
    return team


def test_moved_project_is_not_resumed_in_checkout_at_old_path(tmp_path: Path) -> None:
    team, moved = ran(tmp_path, "state/runs"), tmp_path / "moved"
    team.workspace.rename(moved)
    shutil.copytree(moved, team.workspace, symlinks=True)
    before = sorted(team.workspace.rglob("*"))
    with pytest.raises(UsageError, match=r"its folder of runs was moved from .*workspace/state/runs") as caught:
        resume("latest", runs_dir=moved / "state/runs", changes={"cycles": 2})
    assert f"--workspace {moved}`" in caught.value.hint
    assert sorted(team.workspace.rglob("*")) == before
    changes: ResumeKeywords = {"cycles": 2, "workspace": moved}
    report = resume("latest", runs_dir=moved / "state/runs", changes=changes)
    assert read(report.folder / "run.json")["workspace"] == str(moved)
    assert resume("latest", runs_dir=moved / "state/runs", changes={"cycles": 3}).totals["turns"] == 3


def test_other_folder_of_same_name_requires_explicit_workspace(tmp_path: Path) -> None:
    """A run resumes in it only if the workspace is given."""
    team = ran(tmp_path, "../runs")
    team.workspace.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match="does not exist") as caught:
        team.resume(cycles=2)
    assert "--workspace DIR`" in caught.value.hint
    team.workspace.mkdir()
    with pytest.raises(UsageError, match="another folder of the same name"):
        team.resume(cycles=2)
    assert team.resume(cycles=2, workspace=team.workspace).totals["turns"] == 2
    assert team.resume(cycles=3).totals["turns"] == 3


def test_edited_workspace_is_resumed_in(tmp_path: Path) -> None:
    team = ran(tmp_path, "../runs")
    (team.workspace / "new.txt").write_text("an edit between two sessions")
    assert team.resume(cycles=2).totals["turns"] == 2
