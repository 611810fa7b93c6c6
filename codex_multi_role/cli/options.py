"""Every option, declared once; commands pick theirs."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.completion import flow_names, playbook_names, run_ids
from codex_multi_role.cli.settings import Setting, SettingsCommand, assignments, finite, not_empty, report_file
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.run_options import EVERY_RUN, MOST_REPAIRS, REPLAY_MATCHES, RunOptions

DEFAULTS = {field.name: field.default for field in fields(RunOptions)}


class InputFile(click.Path):
    """A regular file: opening a FIFO or reading a device may never end. With ``allow_dash``, what is open already."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(exists=True, dir_okay=False, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ANN401
        path = Path(str(super().convert(value, param, ctx)))
        is_open = self.allow_dash and str(path).startswith(OPEN_FILES)
        if not is_open and not path.is_file():
            self.fail(f"'{path}' is not a regular file", param, ctx)
        return path


FOLDER = click.Path(file_okay=False, path_type=Path)
MAX_CONCURRENCY = 256
OPEN_FILES = ("-", "/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def default_concurrency(processors: int) -> int:
    """How many goals run at once by default: each has several processes, and tests."""
    return max(1, processors // 2)


def _report(flag: str, told: str) -> Setting:
    path = click.Path(path_type=Path)
    return Setting([flag], metavar="FILE", type=path, callback=report_file, help=f"When the run ends, write {told}.")


GOAL = Setting(["--goal"], metavar="TEXT", callback=not_empty, help="The goal for the team.")
GOAL_FILE = Setting(
    ["--goal-file"],
    metavar="FILE",
    type=InputFile(allow_dash=True),
    help="Read the goal from FILE; `-` reads standard input.",
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
    help="Set an input of the flow; repeatable.",
)
WORKSPACE = Setting(
    ["--workspace"],
    metavar="DIR",
    type=FOLDER,
    default=DEFAULTS["workspace"],
    help="The folder that the roles work on.",
    show_default="the current folder",
)
WORKTREE = Setting(
    ["--worktree"],
    is_flag=True,
    help="Work in a new git worktree at the checked-out commit, and leave --workspace as it is.",
)
BRANCH = Setting(
    ["--branch"],
    metavar="NAME",
    callback=not_empty,
    help="With --worktree: create this branch there.",
    show_default="no branch, detached",
)
WORKSPACE_COPY = Setting(
    ["--workspace-copy"],
    metavar="GLOB",
    multiple=True,
    help="Copy these files or folders of --workspace, such as .env, into every new worktree or copy of it; repeatable.",
)
WORKSPACE_SETUP = Setting(
    ["--workspace-setup"],
    metavar="COMMAND",
    callback=not_empty,
    help="Run this shell command in every new worktree or copy of the workspace, in the sandbox of the tests.",
    show_default="none",
)
ROLES = Setting(
    ["--roles"],
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The catalog file, or a folder with catalog.yaml.",
    show_default="./roles if it has a catalog.yaml, otherwise the shipped roles",
)
RUNS_DIR = Setting(
    ["--runs-dir"],
    metavar="DIR",
    type=FOLDER,
    default=DEFAULTS["runs_dir"],
    help="The folder in which runs are recorded.",
)
RUN_ID = Setting(
    ["--run-id"],
    metavar="ID",
    callback=not_empty,
    help="The id of the run.",
    show_default="date, time and a random part",
)
MODEL = Setting(
    ["--model"],
    metavar="NAME",
    callback=not_empty,
    help="The model for roles that do not name one.",
    show_default="chosen by Codex",
)
REPAIR_ATTEMPTS = Setting(
    ["--repair-attempts"],
    metavar="N",
    type=click.IntRange(min=0, max=MOST_REPAIRS),
    default=DEFAULTS["repair_attempts"],
    help="Maximum number of extra turns to repair an invalid answer.",
)
RUN_TESTS = Setting(
    ["--run-tests/--no-run-tests"], default=DEFAULTS["run_tests"], help="Run pytest after each turn that changed files."
)
PYTEST_CMD = Setting(
    ["--pytest-cmd"],
    metavar="COMMAND",
    callback=not_empty,
    help="The command that starts pytest.",
    show_default="`python -m pytest` in the project's environment",
)
PYTHON = Setting(
    ["--python"],
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The Python that runs the tests, or its virtual environment.",
    show_default="the project's virtual environment",
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
    help="Time limit for each test run and each other check.",
)
CONFIG = Setting(
    ["-c", "--config"],
    metavar="KEY=VALUE",
    multiple=True,
    callback=assignments,
    help="A setting to pass to Codex; repeatable.",
)
CODEX_BIN = Setting(
    ["--codex-bin"],
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The Codex binary.",
    show_default="the bundled binary",
)
PLAYBOOK = Setting(
    ["--playbook"],
    metavar="NAME|FILE",
    callback=not_empty,
    shell_complete=playbook_names,
    help="Take the answers from this playbook instead of a model. A playbook may also set goal and cycles. "
    "auto: small valid answers made from the roles' JSON Schemas, to try a team of your own.",
)
RECORD = Setting(
    ["--record"],
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Record every exchange with the model in FILE, without secrets, for --replay.",
)
REPLAY = Setting(
    ["--replay"],
    metavar="FILE",
    type=InputFile(),
    help="Take the answers from a recording instead of a model, and also goal, flow, inputs and cycles.",
)
REPLAY_MATCH = Setting(
    ["--replay-match"],
    type=click.Choice(REPLAY_MATCHES),
    default=DEFAULTS["replay_match"],
    help="If a prompt differs from the recorded one: fail, or replay the most similar turn of the role.",
)
MAX_TURNS = Setting(
    ["--max-turns"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Park the run (exit code 5) after N turns.",
)
MAX_TOKENS = Setting(
    ["--max-tokens"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Park the run once N tokens, input and output, are exceeded, also within a turn.",
)
MAX_SECONDS = Setting(
    ["--max-seconds"],
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    help="Park the run after S seconds of work, also within a turn.",
)
MAX_COST = Setting(
    ["--max-cost"],
    metavar="X",
    type=click.FloatRange(min=0, min_open=True),
    callback=finite,
    help="Park the run once X US dollars are exceeded, also within a turn. Every model needs a price (--prices).",
)
PRICES = Setting(
    ["--prices"],
    metavar="FILE",
    type=InputFile(),
    help="The price list: what models cost per million tokens.",
    show_default="prices.yaml beside the catalog, otherwise the shipped list",
)
MAX_PROCESSES = Setting(
    ["--max-processes"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Maximum number of Codex processes; further turns wait for a free one.",
)
YES = Setting(["--yes/--no-yes"], default=DEFAULTS["yes"], help="Approve every review without asking.")
DATABASE_URL = Setting(
    ["--database-url"],
    metavar="URL",
    callback=not_empty,
    help="Store the journal in this Postgres database.",
    show_default="a file in the run folder",
)
SHARED_RUNS = Setting(
    ["--database-url"],
    metavar="URL",
    callback=not_empty,
    help="Also the runs that the workers of this database execute.",
    show_default="only those in --runs-dir",
)
DRY_RUN = Setting(
    ["--dry-run"],
    is_flag=True,
    help="Show every prompt of the first pass without starting anything; <role.field> marks unknown values.",
)
RERUN_DRY_RUN = Setting(
    ["--dry-run"],
    is_flag=True,
    help="List the turns that would be asked, why, and what they used before; nothing is started or changed.",
)
REUSE = Setting(
    ["--reuse"],
    is_flag=True,
    callback=lambda _ctx, _option, given: EVERY_RUN if given else "",
    help="Take over turns of earlier runs in --runs-dir if everything that they depend on is equal.",
)
NEW_WORKSPACE = Setting(
    ["--workspace"],
    metavar="DIR",
    type=FOLDER,
    help="The folder to restore the workspace in; must be empty or not exist.",
    show_default="<workspace>.fork-…, next to the old one",
)
START = Setting(
    ["--from"],
    metavar="STEP[:VISIT]",
    callback=not_empty,
    help="Fork before this visit of the step.",
    show_default="the last visit",
)
JSON = Setting(["--json"], is_flag=True, help="Print JSON on standard output.")
WAIT = Setting(
    ["--wait"],
    is_flag=True,
    help="If a usage limit parked the run, wait until the limit resets, then resume.",
)
PLAIN = Setting(["--plain"], is_flag=True, help="Print one line per event instead of the live view.")
AWAIT_ANSWERS = Setting(
    ["--await-answers"],
    is_flag=True,
    help="Without a terminal, wait for answers from `approve` or `serve` instead of parking.",
)
QUIET = Setting(["--quiet"], is_flag=True, help="Print errors only.")

HOST = Setting(["--host"], metavar="NAME", default="127.0.0.1", callback=not_empty, help="The address to listen on.")
PORT = Setting(
    ["--port"],
    metavar="N",
    type=click.IntRange(0, 65535),
    default=8765,
    help="The port to listen on; 0 chooses a free one.",
)
PUBLIC_URL = Setting(
    ["--public-url"],
    metavar="URL",
    callback=not_empty,
    help="The public address, if visitors come through a proxy; they then need the token.",
    show_default="none",
)
TOKEN = Setting(
    ["--token"],
    metavar="TEXT",
    help="The access token for visitors. Set it in the environment: other users can see command lines.",
    show_default="none for this machine only, otherwise generated and printed",
)
JUNIT = _report("--junit", "the run and its latest tests to FILE as JUnit XML")
SUMMARY = _report("--summary", "a Markdown summary to FILE (appended if FILE is $GITHUB_STEP_SUMMARY)")
ANNOTATIONS = _report("--annotations", "GitLab annotations with links into the run folder to FILE")
REPORTS = [JUNIT, SUMMARY, ANNOTATIONS]
"""The report files for a CI system."""

OF_THIS_PROCESS = [AWAIT_ANSWERS, JSON, PLAIN, QUIET, *REPORTS]
"""How this process shows and reports the run, and who answers its questions; the run does not remember these."""

RUN_SECTIONS = {
    "Goal and flow": [GOAL, GOAL_FILE, FLOW, INPUT, CYCLES],
    "Team and workspace": [
        *(ROLES, WORKSPACE, WORKTREE, BRANCH, WORKSPACE_COPY, WORKSPACE_SETUP),
        *(RUNS_DIR, RUN_ID, DATABASE_URL),
    ],
    "Models and Codex": [MODEL, CONFIG, CODEX_BIN, REPAIR_ATTEMPTS],
    "Without a model": [PLAYBOOK, RECORD, REPLAY, REPLAY_MATCH, DRY_RUN],
    "Limits": [MAX_TURNS, MAX_TOKENS, MAX_COST, PRICES, MAX_SECONDS, MAX_PROCESSES, REUSE],
    "Tests": [RUN_TESTS, PYTEST_CMD, PYTHON, TEST_SANDBOX, TEST_SECONDS],
    "Questions": [YES, AWAIT_ANSWERS],
    "Output": [JSON, PLAIN, QUIET, *REPORTS],
}
"""The settings of a run, by their heading in ``--help``."""
CONCURRENCY = Setting(
    ["--concurrency"],
    metavar="N",
    type=click.IntRange(min=1, max=MAX_CONCURRENCY),
    default=lambda: default_concurrency(os.cpu_count() or 1),
    help="Maximum number of goals at once.",
    show_default="half the number of CPUs",
)
SHARD = Setting(
    ["--shard"],
    metavar="I/N",
    callback=not_empty,
    help="Run only part I of N of the goals: each goal is in exactly one part, decided by its id.",
    show_default="all goals",
)
TOTAL_MAX_TURNS = Setting(
    ["--total-max-turns"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Start a goal only if its --max-turns is left of N turns for all goals.",
)
TOTAL_MAX_TOKENS = Setting(
    ["--total-max-tokens"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Start a goal only if its --max-tokens is left of N tokens for all goals.",
)
TOTAL_MAX_COST = Setting(
    ["--total-max-cost"],
    metavar="X",
    type=click.FloatRange(min=0, min_open=True),
    callback=finite,
    help="Start a goal only if its --max-cost is left of X US dollars for all goals.",
)
TOTAL_MAX_SECONDS = Setting(
    ["--total-max-seconds"],
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    help="Start a goal only if its --max-seconds is left of S seconds of work for all goals.",
)
MAX_FAILURES = Setting(
    ["--max-failures"],
    metavar="N",
    type=click.IntRange(min=1),
    help="Start no more goals once N have failed (exit code 2 or 3). Not with --database-url.",
    show_default="unlimited",
)
QUEUE = Setting(
    ["--queue"], metavar="NAME", default="goals", callback=not_empty, help="With --database-url: the queue of the runs."
)
STORE = Setting(
    ["--store"],
    metavar="ADDRESS",
    callback=not_empty,
    help="Where run folders are saved for all machines: a shared folder, or an address such as s3://bucket/runs.",
    show_default="the one the database knows; at first, store/ in --runs-dir",
)
BATCH = [
    *(CONCURRENCY, SHARD, TOTAL_MAX_TURNS, TOTAL_MAX_TOKENS, TOTAL_MAX_COST, TOTAL_MAX_SECONDS),
    *(MAX_FAILURES, QUEUE, STORE),
]
"""The settings of a whole batch."""
RUN = [setting for settings in RUN_SECTIONS.values() for setting in settings]
RUN_OF_BATCH = [
    *(FLOW, INPUT, CYCLES, ROLES, WORKSPACE, WORKTREE, WORKSPACE_COPY, WORKSPACE_SETUP, RUNS_DIR),
    *(
        MODEL,
        CONFIG,
        CODEX_BIN,
        DATABASE_URL,
        REPAIR_ATTEMPTS,
        PLAYBOOK,
        MAX_TURNS,
        MAX_TOKENS,
        MAX_COST,
        PRICES,
        MAX_SECONDS,
        MAX_PROCESSES,
        REUSE,
    ),
    *(RUN_TESTS, PYTEST_CMD, PYTHON, TEST_SANDBOX, TEST_SECONDS, YES, JSON, PLAIN, QUIET),
]
"""The settings of a run that a batch takes for its goals."""
SERVE = [HOST, PORT, PUBLIC_URL, RUNS_DIR, ROLES, TOKEN]
KNOWN = [*RUN, *SERVE, *BATCH]
"""The settings that a settings file may have."""
SECTIONS = {"All goals together": BATCH, **RUN_SECTIONS}

BOUNDING = [
    *(CYCLES, REPAIR_ATTEMPTS, RUN_TESTS, TEST_SECONDS, MAX_TURNS, MAX_TOKENS, MAX_COST, MAX_SECONDS, MAX_PROCESSES),
    *(MODEL, PRICES, CONFIG),
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
    *map(_remembered, (TEST_SECONDS, CONFIG, CODEX_BIN, PLAYBOOK, MAX_TURNS, MAX_TOKENS)),
    *map(_remembered, (MAX_COST, PRICES, MAX_SECONDS)),
    *map(_remembered, (MAX_PROCESSES, YES, REPLAY_MATCH, WORKSPACE_COPY, WORKSPACE_SETUP)),
]
FORKABLE = [
    *map(_remembered, (GOAL, GOAL_FILE, FLOW)),
    *(NEW_WORKSPACE if each.key == "workspace" else each for each in CHANGEABLE),
    RUN_ID,
]


run_argument = click.argument("run", metavar="[RUN]", default=LATEST, shell_complete=run_ids)
"""An id, a unique prefix of one, or ``latest``."""


def command(
    *settings: Setting,
    cls: type[SettingsCommand] = SettingsCommand,
    **keywords: Any,  # noqa: ANN401 - click's own
) -> Callable[[Callable[..., Any]], SettingsCommand]:
    """Declare a `click.command` with these settings; each is also an environment variable and a key of the file."""
    sections = {setting.key: heading for heading, listed in SECTIONS.items() for setting in listed}
    return click.command(cls=cls, known=KNOWN, sections=sections, params=list(settings), **keywords)
