"""What a run leaves for a CI system, as the command leaves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from junitparser import JUnitXml

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.main import group
from codex_multi_role.cli.run import run as command
from codex_multi_role.cli.run_additions import report_end
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.ci.extension import reports
from codex_multi_role.extensions.ci.reports import report_failure
from codex_multi_role.presentation.course import Course
from tests.support.console import console
from tests.support.teams import TeamFolder, with_flow
from tests.support.teams import say as answer
from tests.support.workflow_log import read_log

pytestmark = pytest.mark.usefixtures("scripted_codex")

HOSTILE = "see ##[set-output name=outcome]done and\n::error::owned"
OPTIONS = ["--roles", "roles", "--playbook", "playbook.yaml", "--workspace", "workspace", "--no-run-tests"]


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    return TeamFolder(tmp_path, {"planner": {}}, {"planner": [answer(HOSTILE), answer("done more")]})


def run(team: TeamFolder, *more: str, **variables: str) -> Any:
    return console("--goal", "reach it", *OPTIONS, "--cycles", "1", *more, folder=team.folder, variables=variables)


def errors_in(path: Path) -> list[str]:
    return [
        result.message for suite in JUnitXml.fromstring(path.read_bytes()) for case in suite for result in case.result
    ]


def test_unsuccessful_run_is_red_in_every_report(team: TeamFolder) -> None:
    """Annotations, JUnit and summary show the failure. Text of a model never becomes a workflow command."""
    step = team.folder / "step.md"
    step.write_text("# what was there\n")
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(step), "GITHUB_WORKSPACE": str(team.folder)}
    done = run(team, "--json", "--junit", "junit.xml", "--summary", "step.md", "--annotations", "links.json", **github)
    assert done.returncode == 1, done.stderr
    assert read_log(done.stdout) == []
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events == [json.loads(line) for line in (team.runs / "latest/events.jsonl").read_text().splitlines()]
    assert any("##[set-output" in str(event.get("summary")) for event in events)
    [(kind, properties, text)] = read_log(done.stderr)
    assert (kind, properties) == ("error", {"title": "codex-multi-role: All cycles are used up"})
    assert "next: codex-multi-role resume" in text
    [message] = errors_in(team.folder / "junit.xml")
    assert message.startswith("All cycles are used up: ")
    assert step.read_text().startswith("# what was there\n## ❌ codex-multi-role: All cycles are used up\n")
    assert json.loads((team.folder / "links.json").read_text()) == {}
    again = console("resume", "latest", "--cycles", "2", "--quiet", "--summary", "other.md", folder=team.folder)
    assert again.returncode == 1
    assert "turns: 2" in (team.folder / "other.md").read_text()


def test_what_is_wrong_before_a_run_is_red_and_annotated(team: TeamFolder) -> None:
    (team.folder / "summary.md").write_text("old")
    reports = ["--junit", "junit.xml", "--summary", "summary.md"]
    done = run(team, "--flow", "nowhere", *reports, GITHUB_ACTIONS="true")
    assert done.returncode == 2
    assert (team.folder / "summary.md").read_text().startswith("## ❌ codex-multi-role: No run\n")
    [message] = errors_in(team.folder / "junit.xml")
    assert "nowhere" in message
    [(kind, _, text)] = read_log(done.stderr)
    assert kind == "error"
    assert "nowhere" in text


def test_unwritable_report_path_is_reported_before_the_run(
    team: TeamFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (team.folder / "folder").mkdir()
    (team.folder / "link.xml").symlink_to("/dev/null")
    monkeypatch.chdir(team.folder)
    for path, problem in (
        ("nowhere/junit.xml", "folder 'nowhere' does not exist"),
        ("folder", "'folder' is not a regular file"),
        ("link.xml", "'link.xml' is not a regular file"),
        ("/dev/null", "'/dev/null' is not a regular file"),
    ):
        assert run_guarded(group, ["--goal", "reach it", *OPTIONS, "--junit", path]) == 2
        assert problem in capsys.readouterr().err
    assert not team.runs.exists()


@pytest.mark.long
def test_late_report_failure_warns_and_keeps_the_exit_code(team: TeamFolder) -> None:
    """Only here a role moves the place of a report while it works."""
    (team.folder / "reports").mkdir()
    (team.folder / "elsewhere").mkdir()
    command = {"cmd": "mv ../reports ../gone && ln -s elsewhere ../reports"}
    team.write_plays(planner=[{"steps": [{"call": "exec_command", "arguments": command}, answer("moved")]}])
    team.write_catalog(planner={"sandbox": "danger-full-access", "approval_policy": "never"})
    done = run(team, "--junit", "reports/junit.xml", "--summary", "summary.md")
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("warning:")]
    assert line.startswith("warning: the run has ended and the exit code stays 1, but --junit was not written: ")
    assert "points to another place" in line
    assert not list((team.folder / "elsewhere").iterdir())
    assert (team.folder / "summary.md").exists()


def test_late_report_failure_without_a_run_mentions_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The warning does not claim that a run is over if no run was started."""
    (tmp_path / "reports").mkdir()
    ctx = click.Context(group)
    ctx.params["junit"] = tmp_path / "reports/junit.xml"
    (tmp_path / "reports").rename(tmp_path / "gone")
    (tmp_path / "reports").symlink_to("gone")
    reports.failed(ctx, UsageError("there is no such flow"))
    assert capsys.readouterr().err.startswith("warning: the exit code stays 2, but --junit was not written: ")


def test_run_that_cannot_be_read_any_more_keeps_its_exit_code(
    team: TeamFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = team.run()
    (report.folder / "tests/001").mkdir(parents=True)
    (report.folder / "tests/001/result.json").write_text('{"status": "failed"}')
    (report.folder / "run.json").unlink()
    monkeypatch.chdir(team.folder)
    with command.make_context("run", ["--junit", "junit.xml"]) as context:
        report_end(context, report, Course())
    assert capsys.readouterr().err.startswith(
        "warning: the run has ended and the exit code stays 1, but the reports failed: "
    )


def test_report_that_this_process_cannot_write_is_named(team: TeamFolder) -> None:
    """The answer to a parked run is given, but its end is another process's."""
    with_flow(team, {"steps": [{"id": "ok", "review": "Ship it?"}]})
    assert run(team, "--flow", "own").returncode == 4
    approved = console("approve", "--comment", "good", "--junit", "junit.xml", folder=team.folder)
    assert approved.returncode == 0
    warning = "warning: --junit was not written because the run did not end in this process"
    assert warning in approved.stderr.splitlines()
    assert not (team.folder / "junit.xml").exists()


def test_summary_of_a_step_is_not_appended_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, link = tmp_path / "other.md", tmp_path / "step.md"
    path.write_text("first\n")
    link.symlink_to(path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(link))
    report_failure({"summary": link}, UsageError("no run"))
    assert "--summary was not written" in capsys.readouterr().err
    assert path.read_text() == "first\n"
