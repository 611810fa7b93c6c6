"""The console entry point: the commands, and the text of ``--help``."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from contextlib import suppress

import click

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.completion import VARIABLE
from codex_multi_role.cli.lazy_group import INSTALLED, LazyCommand, LazyGroup, ended
from codex_multi_role.cli.output import open_missing
from codex_multi_role.errors import CodexMultiRoleError, ExitCode
from codex_multi_role.run_folder.folder import PROGRAM
from codex_multi_role.version import __version__

LEAVING_SECONDS = 2.0
WIDTH = 80
"""Of all texts of ``--help``."""
UNCOLLECTED_OBJECTS = 100_000
"""New objects that trigger a garbage collection. The start of a run creates 80,000, of which fewer than 1,000 are
garbage; Python's default would collect 120 times in a run of twelve turns, in 50 ms (measured)."""
COMMANDS = {
    "run": ("run", "Run a flow for a goal; `run` can be left out."),
    "resume": ("resume", "Resume a run; finished turns are not repeated."),
    "fork": ("resume", "Start a new run from a point in another, or redo a task."),
    "approve": ("decision", "Approve what a run asks."),
    "reject": ("decision", "Reject what a run asks, with a reason."),
    "answer": ("decision", "Answer what a run asks with an option or values."),
    "cancel": ("decision", "Stop a running run."),
    "pause": ("decision", "Park a running run after the turns at work."),
    "runs": ("runs", "List the runs."),
    "show": ("runs", "Show what happened in a run, in order."),
    "watch": ("watch", "Watch a run from another terminal."),
    "roles": ("roles", "List, show, check and add roles."),
    "flows": ("flows", "List, show, draw, check and add flows."),
    "trust": ("trust", "Let settings of a repository name programs and the like."),
    "codex": ("codex_program", "Run the bundled Codex binary, for example `codex login`."),
    "completion": ("completion", "Print the completion script of your shell."),
    "gc": ("gc", "Remove merged copies and the worktrees of ended runs."),
}
"""The module of each command, where its attribute has the name of the command, and its line in ``--help``."""
SECTIONS = {
    "run": "Run",
    "approve": "Decide",
    "runs": "Look",
    "roles": "Your team",
    "trust": "Set up",
}
"""The headings of ``--help``, by the first command below each."""
FOREIGN = {
    **dict.fromkeys(("start", "exec"), "run"),
    **dict.fromkeys(("stop", "kill"), "cancel"),
    **dict.fromkeys(("list", "ls"), "runs"),
    **dict.fromkeys(("status", "log", "logs"), "show"),
    **{"continue": "resume", "help": "--help", "version": "--version", "login": "codex login"},
}
"""What other programs call our commands: these words are not taken as goals."""

HELP = """Run a team of Codex agents on one goal, described in YAML.

\b
Examples:
  codex-multi-role "Add a --version flag" --cycles 3
  codex-multi-role "the goal"                is short for: run "the goal"

RUN is the start of an id; the default is the latest run. `--version` prints the version.

Exit codes: 0 goal reached, 1 not reached, 2 wrong usage, 3 failed, 4 waiting for a person, 5 limit used up,
130 interrupted.
"""

group = LazyGroup(
    name=PROGRAM,
    targets={
        name: LazyCommand(f"{__package__}.{module}:{name.replace('-', '_')}", about)
        for name, (module, about) in COMMANDS.items()
    }
    | {"restart": ended("restart", "`fork RUN --task ID` redoes one task")},
    sections=SECTIONS,
    default="run",
    foreign=FOREIGN,
    installed=INSTALLED,
    help=HELP,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
    params=[],
)
click.version_option(__version__, "--version", "-V", prog_name=PROGRAM)(group)


def main(entry: click.Command = group) -> int:
    """Run the command line of this process, with ``entry`` as its command; returns its exit code."""
    gc.set_threshold(UNCOLLECTED_OBJECTS)
    open_missing()
    instruction = os.environ.get(VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete  # here: only a shell that completes needs it

        try:
            return shell_complete(group, {}, PROGRAM, VARIABLE, instruction)
        except CodexMultiRoleError:  # offer nothing; the command itself reports the error
            return 1
    code = run_guarded(entry, sys.argv[1:])
    gc.freeze()  # otherwise the interpreter walks everything imported once more: a quarter of its exit
    _exit_if_blocked(code)
    return code


def _exit_if_blocked(code: int) -> None:
    """Exit at once if, after an interrupt, a thread with uninterruptible work would delay the exit."""
    end = time.monotonic() + LEAVING_SECONDS
    threads = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    for thread in threads if code == ExitCode.INTERRUPTED else []:
        thread.join(max(0.0, end - time.monotonic()))
        if thread.is_alive():
            for stream in filter(None, (sys.stdout, sys.stderr)):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)
