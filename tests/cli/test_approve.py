"""Reviews as a person meets them: on the terminal of the run, from another one, and after the run ended."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from pathlib import Path

import click
import psutil
import pytest

from codex_multi_role.cli.main import group
from tests.support.console import Session, at_terminal, console
from tests.support.processes import running
from tests.support.recorded_runs import make_run
from tests.support.reviews import OFFERED, asking, reviewed, summary
from tests.support.teams import TeamFolder, read, say

PROMPT = "Ctrl-D leaves the question open:"


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    return reviewed(tmp_path)


def started(team: TeamFolder, *more: str) -> subprocess.CompletedProcess[str]:
    """The run's command with nobody there."""
    _, _, _, *arguments = team.command("--flow", "own", *more)
    return console(*arguments, folder=team.folder)


def outcome(team: TeamFolder) -> tuple[str, int]:
    record = read(team.runs / "latest/run.json")
    return record["outcome"], record["exit_code"]


def by(team: TeamFolder) -> str:
    return str(read(team.runs / "latest/reviews/ok.1.json")["answer"]["by"])


def test_with_nobody_there_a_run_parks_and_says_what_answers_it(team: TeamFolder) -> None:
    done = started(team)
    assert done.returncode == 4
    run_id = (team.runs / "latest").resolve().name
    answers = f"codex-multi-role approve {run_id} --resume, or codex-multi-role reject {run_id} --comment WHY --resume"
    assert "Waiting for a person: ok.1 waits for a person: Ship it?" in done.stderr
    assert f"  next     {answers}" in done.stderr
    assert "  exit     4: parked, waiting for a person" in done.stderr

    shown = console("show", "latest", folder=team.folder).stdout.splitlines()
    assert "status     parked: Waiting for a person" in shown
    assert "question   ok.1: Ship it?" in shown
    assert shown[-1] == f"next: {answers}"
    assert "ok.1: Ship it?" in console("runs", folder=team.folder).stdout
    (run,) = json.loads(console("runs", "--json", folder=team.folder).stdout)
    assert run["questions"][0]["key"] == "ok.1"


def test_approve_then_resume_continues_a_parked_run(team: TeamFolder) -> None:
    started(team)
    approved = console("approve", "latest", "--comment", "good", "--junit", "junit.xml", folder=team.folder)
    assert approved.returncode == 0
    first, second, third = approved.stderr.splitlines()
    assert first == "ok.1 is approved."
    assert second == "warning: --junit was not written: the run did not end here"
    assert third.startswith("next: codex-multi-role resume ")
    again = console("reject", "latest", "--comment", "no", folder=team.folder)
    assert again.returncode == 2
    assert "ok.1 was approved by" in again.stderr
    assert console("resume", "latest", folder=team.folder).returncode == 0
    assert outcome(team) == ("shipped", 0)


def test_reject_with_resume_ends_with_the_runs_exit_code(team: TeamFolder) -> None:
    started(team)
    rejected = console("reject", "latest", "--comment", "no", "--resume", "--json", folder=team.folder)
    assert rejected.returncode == 1
    events = [json.loads(line) for line in rejected.stdout.splitlines()]
    assert [event["comment"] for event in events if event["type"] == "review_answered"] == ["no"]
    assert outcome(team) == ("refused", 1)


def test_yes_asks_nobody(team: TeamFolder) -> None:
    assert started(team, "--yes").returncode == 0
    assert by(team) == "--yes"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["approve", "latest"], "the run first has asked nothing"),
        (["reject", "latest"], "Missing option '--comment'"),
        (["reject", "latest", "--comment", " "], "it is empty"),
        (["approve", "latest", "--question", "ok.1"], 'the run first has no question "ok.1"'),
        (["approve", "second"], 'no run goes by "second"'),
        (["cancel", "latest"], "no process works on the run first: it is ended"),
    ],
)
def test_invalid_answer_or_cancel_is_reported(tmp_path: Path, arguments: list[str], words: str) -> None:
    make_run(tmp_path / "runs", "first")
    (tmp_path / "runs/latest").unlink()
    (tmp_path / "runs/latest").symlink_to("first")
    done = console(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr


def test_run_without_terminal_waits_for_answer_from_elsewhere(team: TeamFolder) -> None:
    """This needs the flag --await-answers."""
    waits = running(team, "--flow", "own", "--await-answers", until=("review_asked", None))
    with waits as process:
        said = console("approve", "latest", "--comment", "good", folder=team.folder).stderr
        assert said.splitlines() == ["ok.1 is approved.", "The run goes on by itself."]
        assert process.wait(60) == 0
    assert outcome(team) == ("shipped", 0)


@pytest.mark.parametrize("name", ["run", "resume", "fork", "restart", "approve", "reject"])
def test_await_answers_is_an_option_of_every_run_command(name: str) -> None:
    """Every command that works on a run can wait for an answer from elsewhere."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert "await_answers" in {setting.name for setting in command.params}


def test_it_is_asked_on_the_terminal_below_the_table(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        terminal.type("y\n")  # before there is a question: no answer to it
        terminal.wait_for("review ok.1: Ship it?")
        terminal.wait_for('"summary": "it"')
        terminal.wait_for(PROMPT)
        terminal.type("perhaps\n")
        terminal.wait_for(PROMPT)
        terminal.type("y good\n")
        assert terminal.end() == 0
    assert outcome(team) == ("shipped", 0)
    asked_at, *_, last_table = terminal.drawn.split("review ok.1: Ship it?")
    assert "one" in asked_at
    assert "completed" in last_table


def test_no_on_the_terminal_needs_a_reason(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder, TERM="dumb") as terminal:
        terminal.wait_for(PROMPT)
        terminal.type("n\n")
        terminal.wait_for("why not?")
        terminal.type("\n")
        terminal.wait_for("why not?")
        terminal.type("too early\n")
        terminal.wait_for("rejected by")
        assert terminal.end() == 1
    assert "too early" in terminal.drawn.split("rejected by")[1]


def approve(team: TeamFolder) -> str:
    done = console("approve", "latest", "--comment", "good", "--resume", folder=team.folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


def asked_at(terminal: Session) -> None:
    terminal.wait_for(PROMPT)


def test_while_it_waits_on_one_terminal_another_one_answers(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        asked_at(terminal)
        assert "question   ok.1" in console("show", "latest", folder=team.folder).stdout
        assert "The run goes on by itself." in approve(team)
        terminal.wait_for("needs no answer here any more")
        assert terminal.end() == 0
    assert outcome(team) == ("shipped", 0)


def test_end_of_input_leaves_it_open(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        asked_at(terminal)
        terminal.type("\x04")
        assert terminal.end() == 4
    approve(team)
    assert outcome(team) == ("shipped", 0)


def test_ctrl_c_stops_a_run_that_waits(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        asked_at(terminal)
        terminal.type("\x03")
        assert terminal.end() == 130
    approve(team)
    assert outcome(team) == ("shipped", 0)


def test_in_the_background_nobody_is_asked_and_nothing_stops(team: TeamFolder) -> None:
    command = shlex.join(team.command("--flow", "own"))
    with at_terminal(["/bin/bash", "-c", f"set -m; {command} & wait $!; echo code $?"], team.folder) as terminal:
        terminal.wait_for("code 4")
        assert terminal.end() == 0
    assert PROMPT not in terminal.drawn


def test_after_kill_nine_while_it_waited(team: TeamFolder) -> None:
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        asked_at(terminal)
        below = psutil.Process(terminal.child.pid).children(recursive=True)
        terminal.child.send_signal(signal.SIGKILL)
        terminal.end()
    assert not psutil.wait_procs(below, timeout=10)[1]
    assert " killed " in console("runs", folder=team.folder).stdout
    assert "one: turn" not in approve(team)
    assert outcome(team) == ("shipped", 0)


def test_time_limit_ends_the_asking_with_its_default(tmp_path: Path) -> None:
    team = reviewed(tmp_path, time_limit_seconds=1, default="reject")
    with at_terminal(team.command("--flow", "own"), team.folder) as terminal:
        terminal.wait_for("needs no answer here any more")
        assert terminal.end() == 1
    assert by(team) == "time limit"


def test_what_a_role_asks_is_answered_in_words(tmp_path: Path) -> None:
    team = asking(tmp_path)
    with at_terminal(team.command("-c", OFFERED[0]), team.folder) as terminal:
        for question, words in (("Which database?", "use sqlite\n"), ("Which name?", "\n")):
            terminal.wait_for(f": {question}")
            terminal.wait_for("your answer, one line")
            terminal.type(words)
        assert terminal.end() == 1
    assert summary(team) == "knows"


def test_cancel_stops_a_run_that_works_and_it_can_be_resumed(tmp_path: Path) -> None:
    team = reviewed(tmp_path)
    team.plays["one"] = [{"fault": {"stall_seconds": 300}}]
    team.write_plays()
    with running(team, "--flow", "own", until=("turn_started", "one")) as process:
        stopped = console("cancel", "latest", folder=team.folder)
        assert (stopped.returncode, stopped.stderr) == (0, "Cancelled: the run was stopped\n")
        assert process.wait(30) == 130
    assert "it is interrupted" in console("cancel", "latest", folder=team.folder).stderr
    team.plays["one"] = [say("it")]
    team.write_plays()
    assert team.resume(playbook=str(team.playbook), yes=True).outcome == "approved"
