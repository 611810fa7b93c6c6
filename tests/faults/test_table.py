"""Every kind of fault: one word for it in every file, event and line, a bounded price, and a way on.

Costs: each kind of fault is a run that meets it, and the next command that it names.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.codex import failures
from codex_multi_role.presentation.outcome import exit_in_words, outcome_in_words
from codex_multi_role.steps.recovery import ADVICE
from tests.faults.screen import Screen, Seen
from tests.faults.table import FAULTS, PLAYBOOK, Fault
from tests.support.teams import LIMITS, TeamFolder, say

RUN_STATUS = {3: "failed", 5: "parked"}
DONE = say("fixed", status="DONE")
ROLES = ("--roles", "roles")


def team_of(folder: Path, row: Fault) -> TeamFolder:
    """One role that may end the run, and do whatever its commands like."""
    role = {
        "sandbox": "danger-full-access",
        "approval_policy": "never",
        "prompt_text": row.prompt,
        "limits": row.limits,
        "behaviors": {"can_finish": True},
    }
    return TeamFolder(folder, {"one": role}, {"one": [{**row.play, "repairs": [row.play, row.play]}]})


def fix(team: TeamFolder) -> None:
    team.roles["one"] |= {"limits": LIMITS, "prompt_text": "Do it."}
    team.write_catalog()
    team.write_plays(one=[{**DONE, "repairs": [DONE, DONE]}])


@pytest.mark.real
@pytest.mark.parametrize("name", FAULTS)
def test_fault_has_one_word_everywhere_and_next_command_works(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The command on the screen continues the run."""
    row = FAULTS[name]
    team = team_of(tmp_path, row)
    row.home(tmp_path / "codex_home")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex_home"))
    with monkeypatch.context() as patch:
        row.arrange(patch)
        seen = screen.give(
            "run", "--goal", "reach it", *ROLES, "--workspace", "workspace", "--no-run-tests", *row.given
        )
    assert seen.exit_code == row.exit_code, seen.text
    assert_said_alike(seen, row)
    assert_on_the_screen(seen, row)
    assert screen.left_running() == []
    fix(team)
    again = screen.give(*seen.next_command, *ROLES, *PLAYBOOK, *row.fixed)
    assert (again.exit_code, again.record["outcome"]) == (0, "done"), again.text
    assert [turn["outcome"] for turn in again.turns] == [*[row.outcome] * row.turns, "completed"]


def assert_said_alike(seen: Seen, row: Fault) -> None:
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


def assert_on_the_screen(seen: Seen, row: Fault) -> None:
    begin = f"{outcome_in_words(row.outcome)}: "
    (line,) = [line for line in seen.text.splitlines() if line.startswith(begin)]
    assert seen.record["reason"].startswith(line.removeprefix(begin).rstrip(".…"))  # a long one is cut
    assert not row.advice or row.advice in seen.line("hint")
    assert seen.line("exit") == exit_in_words(row.exit_code)
    assert seen.next_command == ["resume", seen.run.name]


def every_outcome() -> set[str]:
    """That a fault can have: those of the table, and those of the table of Codex's classes."""
    pairs = [each for each in (*vars(failures).values(), *failures._CLASSES.values()) if isinstance(each, tuple)]
    named = {each[0] for each in pairs if len(each) == 2 and isinstance(each[1], failures.Remedy)}
    return named | {row.outcome for row in FAULTS.values()} | ADVICE.keys()


def test_each_outcome_is_documented_and_has_its_own_words() -> None:
    documented = (Path(__file__).parents[2] / "docs/reference/outcomes.md").read_text(encoding="utf-8")
    outcomes = every_outcome()
    assert [outcome for outcome in sorted(outcomes) if f"`{outcome}`" not in documented] == []
    assert len({outcome_in_words(outcome) for outcome in outcomes}) == len(outcomes)
