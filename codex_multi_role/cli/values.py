"""Checks of setting values that a type alone does not express."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path

import click

ASSIGNMENT = re.compile(r"[^=\s][^=]*=")


def assignments(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Check ``key=value`` texts. Raises `click.BadParameter`."""
    for value in values:
        if not ASSIGNMENT.match(value):
            raise click.BadParameter(f"'{value}' does not look like key=value", ctx, param)
    return tuple(values)


def finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Check a number of seconds. Raises `click.BadParameter`."""
    if not math.isfinite(value):
        raise click.BadParameter(f"'{value}' is no number of seconds", ctx, param)
    return value


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the value. Raises `click.BadParameter` if it is blank."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty", ctx, param)
    return value


def report_file(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Return a report's path with its folder resolved. Raises `click.BadParameter` before anything starts.

    A link is rejected: its target could change until the report is written, and would be overwritten.
    """
    if path is None:
        return None
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder '{path.parent}'", ctx, param)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise click.BadParameter(f"'{path}' is not a plain file", ctx, param)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"'{path}' cannot be written", ctx, param)
    return path.parent.resolve() / path.name
