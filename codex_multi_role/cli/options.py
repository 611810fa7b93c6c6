"""Every option of the command line: those of a run from its table, the others here; commands pick theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from codex_multi_role.cli.completion import run_ids
from codex_multi_role.cli.setting import FOLDER, InputFile, Setting, flag, not_empty, setting_of
from codex_multi_role.cli.settings import SettingsCommand
from codex_multi_role.option import Section, Use
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.run_options import OPTIONS

SETTINGS = {name: setting_of(each) for name, each in OPTIONS.items()}
"""The options of a run by their name."""
ROLES, RUNS_DIR = SETTINGS["roles"], SETTINGS["runs_dir"]
GOAL_FILE = Setting(
    ["--goal-file"],
    metavar="FILE",
    type=InputFile(allow_dash=True),
    section=Section.GOAL,
    help="Read the goal from FILE; `-` reads standard input.",
)
DRY_RUN = flag(
    "--dry-run",
    "Show every prompt of the first pass without starting anything; <role.field> marks unknown values.",
    Section.WITHOUT_A_MODEL,
)
NEW_WORKSPACE = Setting(
    ["--workspace"],
    section=Section.TEAM,
    metavar="DIR",
    type=FOLDER,
    help="The new or empty folder to restore the workspace in.",
    show_default="<workspace>.fork-…, beside the old one",
)
START = Setting(
    ["--from"],
    metavar="STEP[:VISIT]",
    callback=not_empty,
    help="Fork before this visit of the step.",
    show_default="last",
)
TASK = Setting(["--task"], metavar="ID", callback=not_empty, help="Redo this task; `show` lists the ids.")
JSON = flag("--json", "Print JSON on standard output.", Section.OUTPUT)
WAIT = flag("--wait", "If a usage limit parked the run, wait until the limit resets, then resume.")
PLAIN = flag("--plain", "Print one line per event instead of the live view.", Section.OUTPUT)
AWAIT_ANSWERS = flag(
    "--await-answers",
    "Without a terminal, wait for answers, such as by `approve`, instead of parking.",
    Section.QUESTIONS,
    is_set_once=True,
)
QUIET = flag("--quiet", "Print errors only.", Section.OUTPUT)

OF_THIS_PROCESS = [AWAIT_ANSWERS, JSON, PLAIN, QUIET]
"""How this process shows and reports the run, and who answers its questions; the run does not remember these."""

RUN = sorted(
    [SETTINGS["goal"], GOAL_FILE, *[*SETTINGS.values()][1:], DRY_RUN, *OF_THIS_PROCESS],
    key=lambda each: [*Section].index(each.section or Section.OUTPUT),
)
"""The settings of a run, by their section."""
KNOWN = RUN
"""The settings of the core's own commands, which are keys of settings files."""
BOUNDING = [SETTINGS[name] for name, each in OPTIONS.items() if Use.BOUND in each.use]
"""The settings that determine the worst case of a run."""
CHANGEABLE = [setting_of(each, remembered=True) for each in OPTIONS.values() if Use.RESUME in each.use]
FORKED = {name: setting_of(each, remembered=True) for name, each in OPTIONS.items() if Use.FORK in each.use}
FORKABLE = [FORKED.pop("goal"), GOAL_FILE, *{**FORKED, "workspace": NEW_WORKSPACE}.values()]

run_argument = click.argument("run", metavar="[RUN]", default=LATEST, shell_complete=run_ids)
"""An id, a unique prefix of one, or ``latest``."""


def command(
    *settings: click.Option,
    **keywords: Any,  # noqa: ANN401 - of `SettingsCommand` and click's own
) -> Callable[[Callable[..., Any]], SettingsCommand]:
    """Declare a `click.command` with these; each `Setting` is also an environment variable and a key of the file."""
    return click.command(cls=SettingsCommand, known=KNOWN, params=list(settings), **keywords)
