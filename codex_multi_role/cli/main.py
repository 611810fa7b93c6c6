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
from codex_multi_role.cli.lazy_group import LazyGroup
from codex_multi_role.cli.output import open_missing
from codex_multi_role.errors import CodexMultiRoleError, ExitCode
from codex_multi_role.presentation.wording import PROGRAM
from codex_multi_role.version import __version__

LEAVING_SECONDS = 2.0
COMMANDS = {
    "run": "run",
    "resume": "resume",
    "fork": "resume",
    "approve": "decision",
    "reject": "decision",
    "cancel": "decision",
    "restart": "resume",
    "replay-test": "replay_test",
    "runs": "runs",
    "show": "runs",
    "watch": "watch",
    "report": "browser",
    "serve": "browser",
    "gc": "gc",
    "roles": "roles",
    "flows": "flows",
    "init": "init",
    "schema": "schema",
    "doctor": "doctor",
    "completion": "completion",
    "codex": "doctor",
}
"""The module of each command; there, its attribute has the name of the command."""

HELP = """A team of Codex agents on one goal: roles and flows are YAML, every turn is recorded in runs/<id>/.

Without a command this is `run`.

\b
Examples:
  codex-multi-role --playbook roman-numerals             see it work; no model is asked
  codex-multi-role --goal "Add a --version flag" --cycles 3
  codex-multi-role --goal-file goal.md --workspace ../shop --model gpt-5-codex
  codex-multi-role resume latest --cycles 6              continue where it stopped
  codex-multi-role fork latest --from develop:2          start another run from there
  codex-multi-role restart latest --task T3              do one task again, in another run
  codex-multi-role approve latest --resume               answer yes to a run's question, and resume it
  codex-multi-role show latest                           what happened, turn by turn
  codex-multi-role watch latest                          watch from another terminal
  codex-multi-role report latest --open                  all of it on one page, in the browser
  codex-multi-role serve                                 the same in a browser, live; decide and start there
  codex-multi-role doctor                                is everything here that a run needs?

\b
Every option also as CODEX_MULTI_ROLE_<NAME> and as a key of codex-multi-role.yaml in the current folder
(flag before environment before file before default). RUN is an id, a unique prefix of one, or `latest`.

\b
Exit codes: 0 goal reached, 1 ended without reaching it, 2 wrong usage or configuration,
3 a role or Codex failed for good, 4 parked: waiting for a person, 5 parked: a budget is used up,
130 interrupted. 3, 4, 5 and 130 can be resumed.
"""

group = LazyGroup(
    name=PROGRAM,
    targets={name: f"{__package__}.{module}:{name.replace('-', '_')}" for name, module in COMMANDS.items()},
    default="run",
    help=HELP,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=[],
)
click.version_option(__version__, "--version", "-V", prog_name=PROGRAM)(group)


def main() -> int:
    """Run the command line of this process; returns its exit code."""
    open_missing()
    instruction = os.environ.get(VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete  # here: only a shell that completes needs it

        try:
            return shell_complete(group, {}, PROGRAM, VARIABLE, instruction)
        except CodexMultiRoleError:  # offer nothing; the command itself reports the error
            return 1
    code = run_guarded(group, sys.argv[1:])
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
