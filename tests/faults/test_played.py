"""Every fault that can be played: one word for it in every file, event and line, a bounded price, and a way on."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.presentation.outcome import exit_meaning, outcome_in_words
from tests.faults.played import ALWAYS_PLAYED, LARGER_THAN_THE_PIPE, PLAYED, Played, stop_in_the_middle_of_a_prompt
from tests.faults.screen import Screen, Seen
from tests.support.long_run import by_default
from tests.support.teams import LIMITS, TeamFolder, read, say

RUN_STATUS = {3: "failed", 5: "parked"}
DONE = say("mended", status="DONE")
ROLES, PLAYBOOK = ("--roles", "roles"), ("--playbook", "playbook.yaml")


def team_of(folder: Path, row: Played) -> TeamFolder:
    """One role that may end the run, and do whatever its commands like."""
    role = {
        "sandbox": "danger-full-access",
        "approval_policy": "never",
        "prompt_text": row.prompt,
        "limits": row.limits,
        "behaviors": {"can_finish": True},
    }
    return TeamFolder(folder, {"one": role}, {"one": [{**row.play, "repairs": [row.play, row.play]}]})


def mend(team: TeamFolder) -> None:
    team.roles["one"] |= {"limits": LIMITS, "prompt_text": "Do it."}
    team.plays["one"] = [{**DONE, "repairs": [DONE, DONE]}]
    team.write_catalog()
    team.write_plays()


@pytest.mark.real
@pytest.mark.parametrize("name", by_default(ALWAYS_PLAYED, PLAYED))
def test_fault_has_one_word_everywhere_and_next_command_works(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The command on the screen continues the run."""
    row = PLAYED[name]
    team = team_of(tmp_path, row)
    model = [part for each in row.settings for part in ("-c", each)] or PLAYBOOK
    with monkeypatch.context() as patch:
        row.arrange(patch)
        seen = screen.give("run", "--goal", "reach it", *ROLES, "--workspace", "workspace", "--no-run-tests", *model)
    assert seen.exit_code == row.exit_code, seen.text
    assert_said_alike(seen, row)
    assert_on_the_screen(seen, row)
    assert screen.left_running() == []
    mend(team)
    again = screen.give(*seen.next_command, *ROLES, *PLAYBOOK)
    assert (again.exit_code, again.record["outcome"]) == (0, "done"), again.text
    assert [turn["outcome"] for turn in again.turns] == [*[row.outcome] * row.turns, "completed"]


def assert_said_alike(seen: Seen, row: Played) -> None:
    record = seen.record
    assert (record["status"], record["outcome"], record["exit_code"]) == (
        RUN_STATUS[row.exit_code],
        row.outcome,
        row.exit_code,
    )
    assert row.words in record["reason"]
    turns, told = seen.turns, seen.events("turn_ended")
    assert [(turn["status"], turn["outcome"]) for turn in turns] == [(row.status, row.outcome)] * row.turns
    assert all(row.words in turn["reason"] for turn in turns)
    names = ("status", "outcome", "reason")
    assert [[turn[name] for name in names] for turn in turns] == [[event[name] for name in names] for event in told]
    (end,) = seen.events("run_ended")
    assert all(end[name] == record[name] for name in (*names, "exit_code"))


def assert_on_the_screen(seen: Seen, row: Played) -> None:
    (line,) = [line for line in seen.text.splitlines() if line.startswith(f"{outcome_in_words(row.outcome)}: ")]
    assert row.words in line
    assert row.advice in seen.line("hint")
    assert seen.line("exit") == f"{row.exit_code}: {exit_meaning(row.exit_code)}"
    assert seen.next_command == ["resume", seen.run.name]


@pytest.mark.long(
    "faults/test_played.py::test_fault_has_one_word_everywhere_and_next_command_works",
    "codex/test_client.py::test_killed_child_is_a_crash_and_next_client_resumes",
)
def test_process_stopped_during_prompt_write_is_replaced(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conversation continues in the new process."""
    stop_in_the_middle_of_a_prompt(monkeypatch, first=2, last=2)
    TeamFolder(tmp_path, {"one": {"prompt_text": LARGER_THAN_THE_PIPE}}, {"one": [say("a"), say("b"), say("c")]})
    arguments = ("--goal", "reach it", *ROLES, "--workspace", "workspace", "--no-run-tests", "--cycles", "3")
    seen = screen.give("run", *arguments, *PLAYBOOK)
    assert (seen.exit_code, seen.record["outcome"]) == (1, "cycles_used_up"), seen.text
    turns = seen.turns
    assert [turn["status"] for turn in turns] == ["completed", "stalled", "completed", "completed"]
    assert turns[1]["reason"] == "Codex accepted no input for 0.3 s"
    assert len({turn["thread_id"] for turn in turns}) == 1
    (restart,) = seen.events("role_restarted")
    assert restart["reason"] == turns[1]["reason"]
    began = seen.events("role_started")
    assert [event["resumed"] for event in began] == [False, True]
    history = read(seen.run / "controller_state.json")["history"]
    assert [entry["handoff"]["summary"] for entry in history] == ["a", "b", "c"]
    assert screen.left_running() == []
