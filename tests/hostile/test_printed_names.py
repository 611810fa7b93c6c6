"""Names and texts that a model or a stranger chose, in all that is printed and written for people."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from codex_multi_role.errors import ExitCode
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import Question, Questions, RunFolder, TurnFolder, read_events
from codex_multi_role.run_folder import events as e
from codex_multi_role.run_options import RunOptions, RunReport
from tests.support.browser import Report
from tests.support.console import Completed, console, offered_commands
from tests.support.histories import AT, History
from tests.support.teams import WRITER, TeamFolder, say, with_flow
from tests.support.workspaces import git, write_files

JOB = {"CI_JOB_URL": "https://ci.example/job"}
ROOT = Path("/")
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b35m\x7f\b\r"
BIDI = "\u202e\u2066\u2069\u200f\u061c"
HOSTILE = f"a{ESCAPES}b{BIDI}c\nerror: forged\n::error::forged"
NAMES = [
    f"one{ESCAPES}.py",
    f"two{BIDI}.py",
    "three\nerror: forged.py",
    "four\udce9\udcff.py",
    "five\t.py",
    "##[error]six.py",
]
OWN_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
COMMAND_OF_WORKFLOW = re.compile(r"^\s*::error::|##\[", re.MULTILINE)


class Terminal(TextIOWrapper):
    """Standard output or standard error; standard input stays a pipe."""

    def isatty(self) -> bool:
        return self.write_through


@dataclass(frozen=True)
class Folder:
    """``path`` has ``runs``, the ``workspace`` of the run in it, and an ``other`` checkout."""

    path: Path
    run: Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("hostile")
    history = History(path, {"start.txt": "1\n"}, {"start.txt": "1\n"})
    history.happened(replace(_started(), workspace=str(history.workspace), folder=str(history.run.path)))
    history.turn("writer", dict.fromkeys(NAMES, f"{HOSTILE}\n"), summary=HOSTILE)
    for event in (
        e.RoleActivity("writer", 1, HOSTILE),
        e.Warning(HOSTILE),
        e.FilesApplied("writer", 1, len(NAMES), 0, NAMES),
        e.ReviewAsked(HOSTILE, HOSTILE),
        e.ReviewAnswered(HOSTILE, True, HOSTILE, HOSTILE),
        e.StateChanged(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        e.TestsStarted(1, "writer", 1),
        e.TestsEnded(1, HOSTILE, 1, 1, 0, 0, 0.1, [HOSTILE]),
    ):
        history.happened(event)
    history.ended()
    record = history.run.record()
    options = RunOptions(goal=HOSTILE, workspace=history.workspace, runs_dir=path / "runs")
    texts = dict.fromkeys(("goal", "reason", "hint", "outcome", "playbook"), HOSTILE)
    result = {"title": HOSTILE, "format": "markdown", "text": HOSTILE + "&#x202e;&#27;", "figures": {HOSTILE: HOSTILE}}
    record |= {**texts, "result": result, "status": "failed", "exit_code": 3, "ended_at": record["started_at"]}
    record |= {
        "totals": {"turns": 1, "input_tokens": 1, "output_tokens": 1, "seconds": 1.0},
        "options": options.as_record(),
        "catalog_file": "catalog.yaml",
    }
    kept = {"version": 1, "roles": [{"name": "one", "prompt_text": f"{HOSTILE} before", "model": HOSTILE}]}
    write_files(history.run.catalog_path, {"catalog.yaml": json.dumps(kept)})
    history.run.write_record(record | {"roles_source": str(path / "strange"), "orchestrator_pid": 0})
    turn = TurnFolder.of(history.run, "writer", 1).path
    (turn / "prompt.txt").write_text(HOSTILE)
    write_files(turn, {"assistant_text.txt": HOSTILE, "handoff.json": json.dumps({HOSTILE: [HOSTILE, "\ud83d"]})})
    (turn / "turn.json").write_text(json.dumps({"status": HOSTILE, "reason": HOSTILE, "unit": HOSTILE}))
    (tests := history.run.path / "tests/001").mkdir(parents=True)
    (tests / "result.json").write_text(json.dumps({"status": HOSTILE, "reason": HOSTILE, "output_tail": HOSTILE}))
    write_files(path / "other", {"start.txt": "1\n"})
    return Folder(path, history.run.path)


def _started() -> e.RunStarted:
    return e.RunStarted(
        run_id="first", goal=HOSTILE, flow=HOSTILE, cycles=1, roles=["writer", HOSTILE], workspace="", folder="",
        playbook=HOSTILE, resumed=False, steps=[HOSTILE, "team"], limits={},
    )  # fmt: skip


COMMANDS = {
    "runs": ["runs"],
    "runs json": ["runs", "--json"],
    "show": ["show"],
    "show json": ["show", "--json"],
    "show result": ["show", "--result"],
    "watch all": ["watch", "--all"],
    "cancel": ["cancel"],
    "gc": ["gc"],
    "flows": ["flows", "list", "--roles", "strange"],
    "flows show": ["flows", "show", "own", "--roles", "strange"],
    "flows graph": ["flows", "graph", "own", "--roles", "strange"],
    "flows ascii": ["flows", "graph", "own", "--roles", "strange", "--ascii"],
    "flows outline": ["flows", "graph", "own", "--roles", "strange", "--outline"],
    "flows validate": ["flows", "validate", "own", "--roles", "strange"],
    "roles": ["roles", "list", "--roles", "strange"],
    "roles show": ["roles", "show", "one", "--roles", "strange"],
    "dry run": ["run", HOSTILE, "--roles", "strange", "--flow", "own", "--dry-run"],
}
FAILING = {
    "pause": ["pause"],
    "watch": ["watch"],
    "watch json": ["watch", "--json"],
    "watch plain": ["watch", "--plain"],
    "resume": ["resume"],
    "fork": ["fork", "--from", HOSTILE],
    "fork task": ["fork", "--task", HOSTILE],
    "approve": ["approve", "--comment", HOSTILE],
    "reject": ["reject", "--comment", HOSTILE],
    "answer": ["answer", "latest", f"option={HOSTILE}", "--comment", HOSTILE],
    "no such run": ["show", HOSTILE],
    "no such option": ["show", f"--{HOSTILE}"],
    "no such command": ["flows", HOSTILE],
    "flows missing": ["flows", "show", HOSTILE, "--roles", "strange"],
    "roles validate": ["roles", "validate", "--roles", "strange"],
    "roles missing": ["roles", "validate", "--roles", HOSTILE],
}
"""They end with another exit code than 0: that of the run, or that of a mistake."""
OF_EXTENSIONS = {
    "report": ["report"],
    "config": ["config", "show"],
    "diff": ["diff"],
    "diff of a turn": ["diff", "--role", "writer", "--turn", "1"],
    "diff stat": ["diff", "--stat"],
    "blame": ["blame", f"workspace/{NAMES[0]}"],
    "blame json": ["blame", f"workspace/{NAMES[0]}", "--json"],
    "export": ["export", "--branch", "agents/x"],
    "export json": ["export", "--branch", "agents/x", "--json"],
    "pr": ["pr"],
    "rerun": ["rerun", "--dry-run"],
}
FAILING_OF_EXTENSIONS = {
    "diff of a role": ["diff", "--role", HOSTILE],
    "blame nothing": ["blame", HOSTILE],
    "apply conflicts": ["apply", "--to", "conflicting"],
    "apply json": ["apply", "--to", "conflicting", "--json"],
    "apply": ["apply", "--to", "other"],
    "export elsewhere": ["export", "--branch", HOSTILE],
    "batch": ["batch", "goals.jsonl"],
}
EXACT = {"show result", "diff", "diff of a turn", "diff stat"}
"""What is printed byte by byte where no terminal is."""
TEXTS = {"show result", "pr", "dry run"}


@pytest.fixture(scope="module")
def surroundings(folder: Folder) -> Folder:
    write_files(folder.path / "conflicting", dict.fromkeys(NAMES, "mine\n"))
    write_files(folder.path, {f"recordings/{NAMES[0]}.ndjson": HOSTILE})
    (folder.path / "goals.jsonl").write_text(
        json.dumps({"id": "x", HOSTILE: 1}) + "\n" + json.dumps({"id": HOSTILE, "goal": HOSTILE})
    )
    flow = {"name": "own", "description": HOSTILE, "steps": [{"id": "ask", "ask": "one", "prompt": HOSTILE}]}
    roles = [{"name": "one", "prompt_text": HOSTILE, "model": HOSTILE}]
    write_files(folder.path / "strange", {
        "catalog.yaml": json.dumps({"version": 1, "roles": roles}),
        "flows/own.yaml": json.dumps(flow),
        f"flows/{NAMES[0]}.yaml": HOSTILE,
    })  # fmt: skip
    return folder


@pytest.mark.parametrize("on_terminal", [False, True], ids=["piped", "on a terminal"])
@pytest.mark.parametrize(
    "command",
    [
        *(COMMANDS | FAILING),
        *(pytest.param(each, marks=pytest.mark.extensions) for each in OF_EXTENSIONS | FAILING_OF_EXTENSIONS),
    ],
)
def test_no_command_prints_what_controls_a_terminal_or_a_log(
    surroundings: Folder, monkeypatch: pytest.MonkeyPatch, command: str, on_terminal: bool
) -> None:
    """Results that are printed exactly, such as a patch, are so in a pipe only."""
    if on_terminal:
        monkeypatch.setattr("tests.support.console.TextIOWrapper", Terminal)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    failing = FAILING | FAILING_OF_EXTENSIONS
    done = _run(surroundings, (COMMANDS | OF_EXTENSIONS | failing)[command], TERM="xterm")
    _assert_harmless(done.stderr)
    if on_terminal or command not in EXACT:
        _assert_harmless(done.stdout, of_lines=command in TEXTS)
    assert (done.returncode != 0) == (command in failing), done.stderr
    assert done.stdout or done.stderr
    assert "unexpected" not in done.stderr
    assert "Traceback" not in done.stderr


def _run(folder: Folder, arguments: list[str], **variables: str) -> Completed:
    return console(*arguments, folder=folder.path, variables=variables)


def _assert_harmless(text: str, *, of_lines: bool = False) -> None:
    """``of_lines``: each line of it may be a model's."""
    for sequence in ("\x1b]", "\x1b[2J", "\x1b[35m"):
        assert sequence not in text
    plain = OWN_SEQUENCES.sub("", text)
    assert [letter for letter in plain if not (letter.isprintable() or letter == "\n")] == []
    assert COMMAND_OF_WORKFLOW.search(plain) is None
    assert of_lines or "\nerror: forged" not in f"\n{plain}"


@pytest.mark.extensions
@pytest.mark.usefixtures("scripted_codex")
@pytest.mark.parametrize("on_terminal", [False, True], ids=["piped", "on a terminal"])
def test_run_with_hostile_answers_prints_nothing_of_that_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_terminal: bool
) -> None:
    files = [{"path": name, "content": HOSTILE} for name in NAMES if "\udce9" not in name]
    plays = {"one": [say(HOSTILE, files=files)]}
    steps = [
        {"id": "work", "ask": "one"},
        {"id": "ok", "review": {"question": HOSTILE, "show": f"{{{{ roles.one }}}}{HOSTILE}"}},
    ]
    team = with_flow(TeamFolder(tmp_path, {"one": WRITER}, plays), {"steps": steps})
    if on_terminal:
        monkeypatch.setattr("tests.support.console.TextIOWrapper", Terminal)
    reports = ["--junit", "junit.xml", "--summary", "summary.md"]
    for arguments, exit_code in (
        ([*team.command("--flow", "own", *reports)[3:]], ExitCode.WAITING),
        (["show"], 0),
        (["approve", "--comment", HOSTILE, "--resume"], 0),
        (["diff"], 0),
    ):
        done = console(*arguments, folder=tmp_path, variables={"TERM": "xterm", "GITHUB_ACTIONS": "true"})
        assert done.returncode == exit_code, done.stderr
        _assert_harmless(done.stderr)
        if on_terminal or arguments != ["diff"]:
            _assert_harmless(done.stdout)
    for name in ("junit.xml", "summary.md", "runs/latest/report.html"):
        _assert_readable((tmp_path / name).read_text())


def test_flow_with_its_explanation_is_still_a_flow(surroundings: Folder) -> None:
    """Whatever its description says: every line of the explanation is a comment."""
    shown = _run(surroundings, COMMANDS["flows show"]).stdout
    assert yaml.safe_load(shown) == json.loads((surroundings.path / "strange/flows/own.yaml").read_text())


NOT_ON_A_RECORDED_RUN = {
    *("init", "demo", "doctor", "schema", "completion", "codex", "trust", "serve", "worker", "queues"),
}


@pytest.mark.extensions
def test_every_command_that_prints_names_is_tried() -> None:
    """`serve` has tests of its own below; others start processes, need a database, or print nothing of a run."""
    tables = (COMMANDS, FAILING, OF_EXTENSIONS, FAILING_OF_EXTENSIONS)
    tried = {arguments[0] for table in tables for arguments in table.values()}
    assert tried | NOT_ON_A_RECORDED_RUN == offered_commands()


@pytest.mark.extensions
def test_report_page_shows_no_control_characters(surroundings: Folder) -> None:
    assert _run(surroundings, ["report", "--output", "page.html"]).returncode == 0
    report = Report(surroundings.path / "page.html")
    _assert_readable(report.source)
    for text in strings(list(report.entries.values())):
        _assert_readable(text)
    assert "a]0;owned[2J35m" in report.source


PAGES = {
    "list": "/",
    "search": "/?q=%E2%80%AE%1B",
    "run": "/runs/first",
    "report": "/runs/first/report",
    "files": "/runs/first/files/",
    "named files": "/runs/first/files/strange/",
    "start": "/start",
    "start a flow": "/start?flow=%E2%80%AE%1B",
    "nothing": "/%E2%80%AE%1B",
    "no run": "/runs/%E2%80%AE%1B",
    "failure": "/runs/first?failed=%E2%80%AE%1B",
}


@pytest.mark.extensions
@pytest.mark.parametrize("page", PAGES)
def test_pages_of_the_server_show_no_control_characters(surroundings: Folder, page: str) -> None:
    from tests.support.serving import client

    question = Question("ask.1", HOSTILE, HOSTILE, AT, None, None)
    Questions(surroundings.run).ask(question)
    write_files(surroundings.run, {f"strange/{name}": "" for name in NAMES if "\udce9" not in name})
    answer = client(surroundings.path / "runs").get(PAGES[page])
    assert answer.status_code in (200, 303, 404)
    _assert_readable(answer.text)


def test_picture_of_a_run_has_no_control_characters(surroundings: Folder) -> None:
    assert _run(surroundings, ["show", "--svg", "run.svg"]).returncode == 0
    text = (surroundings.path / "run.svg").read_text()
    ElementTree.fromstring(text)
    _assert_readable(text)


@pytest.mark.extensions
def test_reports_to_ci_have_no_control_characters(surroundings: Folder) -> None:
    from codex_multi_role.extensions.ci.ended_run import EndedRun
    from codex_multi_role.extensions.ci.job_summary import job_summary
    from codex_multi_role.extensions.ci.junit import junit_report
    from codex_multi_role.extensions.ci.reports import link_annotations

    folder = RunFolder(surroundings.run)
    report = RunReport("first", folder.path, "failed", HOSTILE, HOSTILE, 3, HOSTILE, folder.record()["totals"])
    ended = EndedRun.of(report, Course.of(read_events(folder.events_path)))
    junit = junit_report(ended).decode()
    ElementTree.fromstring(junit)
    for text in (junit, job_summary(ended), *strings(link_annotations(ended, JOB | {"CI_PROJECT_DIR": str(ROOT)}))):
        _assert_readable(text)


@pytest.mark.extensions
def test_exported_commits_have_no_control_characters(surroundings: Folder) -> None:
    _run(surroundings, ["export", "--branch", "agents/x"])
    _assert_readable(git(surroundings.path / "workspace", "log", "--format=%B %an <%ae> %D", "agents/x"))


@pytest.mark.extensions
@pytest.mark.parametrize("text", ["&#x202e;", "&#27;[2J", '[a](b "&#x2066;")', "`\u202e`", "# \x1b]0;x", "&#xFEFF;"])
def test_markdown_of_a_result_cannot_name_control_characters(text: str) -> None:
    from codex_multi_role.extensions.pages.report.values import markdown_as_html

    _assert_readable(str(markdown_as_html(text)))


def strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from chain.from_iterable(strings(each) for pair in value.items() for each in pair)
        case list() | tuple():
            yield from chain.from_iterable(map(strings, value))


def _assert_readable(text: str) -> None:
    hidden = [letter for letter in text if unicodedata.category(letter).startswith("C") and letter not in "\n\r\t"]
    assert hidden == []
