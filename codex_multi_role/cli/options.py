"""Every option, declared once; commands pick theirs."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.completion import flow_names, playbook_names, run_ids
from codex_multi_role.cli.settings import Setting, SettingsCommand, assignments, finite, not_empty, report_file
from codex_multi_role.run_options import MOST_REPAIRS, REPLAY_MATCHES, RunOptions

DEFAULTS = {field.name: field.default for field in fields(RunOptions)}
FOLDER = click.Path(file_okay=False, path_type=Path)


def _report(flag: str, told: str) -> Setting:
    path = click.Path(path_type=Path)
    return Setting([flag], metavar="FILE", type=path, callback=report_file, help=f"When the run is over, write {told}.")


GOAL = Setting(["--goal"], metavar="TEXT", callback=not_empty, help="The goal for the team.")
GOAL_FILE = Setting(
    ["--goal-file"],
    metavar="FILE",
    type=click.Path(dir_okay=False, exists=True, allow_dash=True, path_type=Path),
    help="Read the goal from a file, `-` for standard input.",
)
CYCLES = Setting(
    ["--cycles"],
    metavar="N",
    type=click.IntRange(min=1),
    default=DEFAULTS["cycles"],
    help="Maximum number of cycles (rounds of all roles).",
)
FLOW = Setting(
    ["--flow"],
    metavar="NAME",
    default=DEFAULTS["flow"],
    callback=not_empty,
    shell_complete=flow_names,
    help="The flow to run.",
)
INPUT = Setting(
    ["-i", "--input"],
    metavar="KEY=VALUE",
    multiple=True,
    callback=assignments,
    help="An input of the flow; may be repeated.",
)
WORKSPACE = Setting(
    ["--workspace"],
    metavar="DIR",
    type=FOLDER,
    default=DEFAULTS["workspace"],
    help="The folder the roles work on.",
    show_default="here",
)
ROLES = Setting(
    ["--roles"],
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The catalog file, or the folder with catalog.yaml.",
    show_default="./roles if it has one, otherwise the shipped roles",
)
RUNS_DIR = Setting(
    ["--runs-dir"], metavar="DIR", type=FOLDER, default=DEFAULTS["runs_dir"], help="Where runs are recorded."
)
RUN_ID = Setting(
    ["--run-id"], metavar="ID", callback=not_empty, help="Name the run.", show_default="the time and a random part"
)
MODEL = Setting(
    ["--model"],
    metavar="NAME",
    callback=not_empty,
    help="The model of roles that name none.",
    show_default="Codex's own choice",
)
REPAIR_ATTEMPTS = Setting(
    ["--repair-attempts"],
    metavar="N",
    type=click.IntRange(min=0, max=MOST_REPAIRS),
    default=DEFAULTS["repair_attempts"],
    help="Maximum number of turns to repair a malformed answer.",
)
RUN_TESTS = Setting(
    ["--run-tests/--no-run-tests"], default=DEFAULTS["run_tests"], help="Run pytest after turns that changed files."
)
PYTEST_CMD = Setting(
    ["--pytest-cmd"],
    metavar="COMMAND",
    callback=not_empty,
    help="How to start pytest.",
    show_default="python -m pytest of the project's Python",
)
PYTHON = Setting(
    ["--python"],
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The Python that runs the tests, or the folder of its environment.",
    show_default="the project's own environment",
)
TEST_SANDBOX = Setting(
    ["--test-sandbox/--no-test-sandbox"],
    default=DEFAULTS["test_sandbox"],
    help="Run the tests in Codex's sandbox, without network.",
)
TEST_SECONDS = Setting(
    ["--test-seconds"],
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULTS["test_seconds"],
    callback=finite,
    help="The deadline of one test run, and of other checks.",
)
CONFIG = Setting(
    ["-c", "--config"],
    metavar="KEY=VALUE",
    multiple=True,
    callback=assignments,
    help="A setting handed to Codex; may be repeated.",
)
CODEX_BIN = Setting(
    ["--codex-bin"],
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The Codex binary.",
    show_default="the bundled one",
)
PLAYBOOK = Setting(
    ["--playbook"],
    metavar="NAME|FILE",
    callback=not_empty,
    shell_complete=playbook_names,
    help="Ask no model: the answers come from this playbook, which may also suggest goal and cycles. "
    "auto: small valid answers made from the roles' JSON Schemas, to try a team of your own.",
)
RECORD = Setting(
    ["--record"],
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every exchange with a model to FILE, without secrets, to be replayed.",
)
REPLAY = Setting(
    ["--replay"],
    metavar="FILE",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Ask no model: the answers are those in FILE, and so are goal, flow, inputs and cycles.",
)
REPLAY_MATCH = Setting(
    ["--replay-match"],
    type=click.Choice(REPLAY_MATCHES),
    default=DEFAULTS["replay_match"],
    help="What a prompt that is not the recorded one gets: a failure, or the most similar turn of the role.",
)
MAX_TURNS = Setting(
    ["--max-turns"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Park the run (exit 5) rather than begin another turn after N.",
)
MAX_TOKENS = Setting(
    ["--max-tokens"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Park the run rather than begin a turn once N tokens, in and out, are used.",
)
MAX_SECONDS = Setting(
    ["--max-seconds"],
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    help="Park the run rather than begin a turn once it was worked on for S seconds.",
)
MAX_PROCESSES = Setting(
    ["--max-processes"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Keep at most N Codex processes alive at once; further turns wait for one to be free.",
)
YES = Setting(["--yes/--no-yes"], default=DEFAULTS["yes"], help="Approve every review; nobody is asked.")
DATABASE_URL = Setting(
    ["--database-url"],
    metavar="URL",
    callback=not_empty,
    help="Keep the journal in this Postgres.",
    show_default="a file in the run folder",
)
DRY_RUN = Setting(
    ["--dry-run"],
    is_flag=True,
    help="Start nothing: show every prompt of the first pass, with <role.field> for what only a run can know.",
)
NEW_WORKSPACE = Setting(
    ["--workspace"],
    metavar="DIR",
    type=FOLDER,
    help="The folder to restore the workspace in: one that is empty or not there.",
    show_default="<workspace>.fork-…, beside the old one",
)
START = Setting(
    ["--from"],
    metavar="STEP[:VISIT]",
    callback=not_empty,
    help="Where the fork begins: before this visit of the step.",
    show_default="the step's last visit",
)
JSON = Setting(["--json"], is_flag=True, help="Machine output on standard output.")
WAIT = Setting(
    ["--wait"],
    is_flag=True,
    help="If a usage limit parked the run: wait until the limit resets, then resume.",
)
PLAIN = Setting(["--plain"], is_flag=True, help="Lines, one an event, instead of the view that redraws itself.")
AWAIT_ANSWERS = Setting(
    ["--await-answers"],
    is_flag=True,
    help="Without a terminal: wait for answers from elsewhere (`approve`, `serve`) instead of parking.",
)
QUIET = Setting(["--quiet"], is_flag=True, help="Say nothing unless something is wrong.")

HOST = Setting(["--host"], metavar="NAME", default="127.0.0.1", callback=not_empty, help="Where to listen.")
PORT = Setting(
    ["--port"],
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8765,
    help="The port to listen on; 0 takes one that is free.",
)
PUBLIC_URL = Setting(
    ["--public-url"],
    metavar="URL",
    callback=not_empty,
    help="The address of a proxy in front, where visitors come by one; they then need the token.",
    show_default="none",
)
TOKEN = Setting(
    ["--token"],
    metavar="TEXT",
    help="What visitors must have; better in the environment than on the command line, which others can see.",
    show_default="none on this machine only, otherwise one that is made and printed",
)
JUNIT = _report("--junit", "it and its latest tests to FILE as JUnit XML")
SUMMARY = _report("--summary", "a summary of it to FILE in Markdown; $GITHUB_STEP_SUMMARY is appended to")
ANNOTATIONS = _report("--annotations", "GitLab's report of links into the run's folder to FILE")
REPORTS = [JUNIT, SUMMARY, ANNOTATIONS]
"""The report files for a CI system."""

OF_THIS_PROCESS = [AWAIT_ANSWERS, JSON, PLAIN, QUIET, *REPORTS]
"""How this process shows and reports the run, and who answers its questions; the run does not remember these."""

RUN = [
    *(GOAL, GOAL_FILE, CYCLES, FLOW, INPUT, WORKSPACE, ROLES, RUNS_DIR, RUN_ID, MODEL, REPAIR_ATTEMPTS, RUN_TESTS),
    *(PYTEST_CMD, PYTHON, TEST_SANDBOX, TEST_SECONDS, CONFIG, CODEX_BIN, PLAYBOOK, RECORD, REPLAY, REPLAY_MATCH),
    *(MAX_TURNS, MAX_TOKENS, MAX_SECONDS, MAX_PROCESSES, YES, DATABASE_URL, DRY_RUN, *OF_THIS_PROCESS),
]
SERVE = [HOST, PORT, PUBLIC_URL, RUNS_DIR, ROLES, TOKEN]

BOUNDING = [
    *(CYCLES, REPAIR_ATTEMPTS, RUN_TESTS, TEST_SECONDS, MAX_TURNS, MAX_TOKENS, MAX_SECONDS, MAX_PROCESSES),
]
"""The settings that determine the worst case of a run."""


def _remembered(setting: Setting) -> Setting:
    """Copy the setting for a command whose default is the value that the run remembers."""
    remembered = copy(setting)
    remembered.show_default = False
    return remembered


CHANGEABLE = [
    *map(
        _remembered,
        (CYCLES, INPUT, WORKSPACE, ROLES, MODEL, REPAIR_ATTEMPTS, RUN_TESTS, PYTEST_CMD, PYTHON, TEST_SANDBOX),
    ),
    *map(_remembered, (TEST_SECONDS, CONFIG, CODEX_BIN, PLAYBOOK, MAX_TURNS, MAX_TOKENS, MAX_SECONDS)),
    *map(_remembered, (MAX_PROCESSES, YES, REPLAY_MATCH)),
]
FORKABLE = [
    *map(_remembered, (GOAL, GOAL_FILE, FLOW)),
    *(NEW_WORKSPACE if each.key == "workspace" else each for each in CHANGEABLE),
    RUN_ID,
]


run_argument = click.argument("run", metavar="RUN", shell_complete=run_ids)
"""An id, a unique prefix of one, or ``latest``."""


def command(*settings: Setting, **keywords: Any) -> Callable[[Callable[..., Any]], SettingsCommand]:  # noqa: ANN401
    """Declare a `click.command` with these settings; each is also an environment variable and a key of the file."""
    return click.command(cls=SettingsCommand, known=[*RUN, *SERVE], params=list(settings), **keywords)
