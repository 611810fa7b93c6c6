"""The goal of a run: from one of two settings, or as the playbook suggests, otherwise the flow's own."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from codex_multi_role.errors import UsageError

PRECEDENCE = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)
STANDARD_INPUT = Path("-")


def choose_goal(ctx: click.Context, suggestion: str = "") -> str:
    """Return the goal from the source with the highest precedence, or the suggestion. Raises `UsageError` for two."""
    for source in PRECEDENCE:
        given = [name for name in ("goal", "goal_file") if ctx.get_parameter_source(name) is source]
        if len(given) == 2:
            raise UsageError("--goal and --goal-file are both given", "Leave one out.")
        if given == ["goal"]:
            return str(ctx.params["goal"])
        if given == ["goal_file"]:
            return read_goal(ctx.params["goal_file"])
    return suggestion


def read_goal(path: Path) -> str:
    """Read a goal from ``path`` (``-``: standard input), stripped. Raises `UsageError`."""
    try:
        content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
        goal = content.decode("utf-8-sig").strip()
    except OSError as error:
        raise UsageError(f"--goal-file: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--goal-file: {path}: not UTF-8 text (byte {error.start})") from error
    if not goal:
        raise UsageError(f"--goal-file: {path}: it is empty")
    return goal
