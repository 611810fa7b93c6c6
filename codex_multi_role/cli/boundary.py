"""The one place that turns errors into an error line, a hint and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from codex_multi_role.cli.output import annotate, discard_output, say
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError, ExitCode, system_error
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.host.spelling import printable
from codex_multi_role.host.workflow_log import command, runs_here
from codex_multi_role.presentation.wording import columns_of
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.run_folder.folder import PROGRAM
from codex_multi_role.run_options import ended_options

DEBUG_VARIABLE = "CODEX_MULTI_ROLE_DEBUG"
IN_WORDS = (
    (r"is not a valid integer( range)?\.", "is no whole number"),
    (r"is not a valid float( range)?\.", "is no number"),
    (r"is not in the range x>=(\S+)\.", r"is less than \1"),
    (r"is not in the range x>(\S+)\.", r"is not more than \1"),
    (r"is not in the range (\S+)<=x<=(\S+)\.", r"is not from \1 to \2"),
)
"""What click says of a number, and what we say."""
SHOWN_COLUMNS, BEFORE_CARET = 70, 35
"""Of a long line of a file, and of them before the place that is meant."""
READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended


def run_guarded(entry: click.Command, arguments: Sequence[str]) -> int:
    """Run ``entry`` and return its exit code; never raises.

    Does not use `click.Command.main`, which exits the process when the reader of a pipe is gone.
    """
    try:
        with entry.make_context(PROGRAM, list(arguments)) as context:
            entry.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except BrokenPipeError:
        discard_output(sys.stdout)
        return READER_GONE
    except (click.Abort, KeyboardInterrupt):
        return complain("interrupted", "", ExitCode.INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        for line in error.format_message().splitlines():
            say(line)
        return ExitCode.WRONG_USAGE
    except click.NoSuchOption as error:
        return complain(_unknown_option(error), _where_to_read(error), ExitCode.WRONG_USAGE)
    except click.ClickException as error:
        message = " ".join(error.format_message().split())
        for told, words in IN_WORDS:
            message = re.sub(f"{told}$", words, message)
        return complain(message, _where_to_read(error), ExitCode.WRONG_USAGE)
    except CodexMultiRoleError as error:
        return complain_about(error)
    except Exception as error:
        if isinstance(error, OSError):
            discard_output(sys.stdout)
            if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO):  # otherwise a file is named
                error.filename = error.filename or "standard output"
        if known := system_error(error):
            is_wrong_name = isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG  # nothing was started
            return complain(str(known), known.hint, ExitCode.WRONG_USAGE if is_wrong_name else known.exit_code)
        from codex_multi_role.reading.extras import missing_extra  # here: rarely needed, and slow to import

        if problem := missing_extra(error, "this command"):
            return complain_about(problem)
        return complain(f"unexpected {type(error).__name__}: {error}", _keep_traceback(), ExitCode.FAILED)
    return 0


def complain_about(error: CodexMultiRoleError) -> int:
    """Print the error, each problem of a definition with its own hint; returns its exit code."""
    for each in error.problems if isinstance(error, DefinitionError) else (error,):
        complain(str(each), each.hint, each.exit_code, _pointed_at(each) if isinstance(each, DefinitionError) else [])
    return error.exit_code


def _pointed_at(error: DefinitionError) -> list[str]:
    """The line of the file with the mistake, and a caret below its place; nothing if that is unknown."""
    if not error.position:
        return []
    line, column = (*error.position, 1)[:2]
    try:
        text = Path(error.file).read_text(encoding="utf-8-sig").splitlines()[line - 1]
    except (OSError, ValueError, IndexError):
        return []
    begin = max(0, column - BEFORE_CARET) if len(text) > SHOWN_COLUMNS else 0
    before, shown = (printable(text[begin:end]) for end in (column - 1, begin + SHOWN_COLUMNS))
    return [f"  {line} | {Redactor(os.environ)(shown)}", f"  {' ' * len(str(line))} | {' ' * columns_of(before)}^"]


def complain(message: str, hint: str, code: int, pointed_at: Sequence[str] = ()) -> int:
    """Print the error, the place in the file and the hint on stderr; returns ``code``."""
    say("\n".join([f"error: {message}", *pointed_at]))
    if hint:
        say(f"hint: {hint}")
    if runs_here():
        annotate(command("error", "\n".join(filter(None, [message, hint])), title=PROGRAM))
    return code


def _unknown_option(error: click.NoSuchOption) -> str:
    if instead := ended_options().get(error.option_name.removeprefix("--").replace("-", "_")):
        return f'"{error.option_name}" is not an option any more; {instead}'
    return f'unknown option "{error.option_name}"{did_you_mean(error.option_name, error.possibilities or ())}'


def _where_to_read(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"See `{context.command_path if context else PROGRAM} --help`."


def _keep_traceback() -> str:
    if os.environ.get(DEBUG_VARIABLE):
        say(traceback.format_exc())
        return "The traceback is above. Please report it."
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="replace", prefix=f"{PROGRAM}-", suffix=".log", delete=False
        ) as file:
            traceback.print_exc(file=file)  # noqa: TID251 - to a file
    except OSError:
        return f"Set {DEBUG_VARIABLE}=1 to see the traceback."
    return f"The traceback is in {file.name}. Please report it."
