"""One option that is also an environment variable and a key of settings files, and how it is made from the table."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from codex_multi_role.cli.completion import flow_names, playbook_names
from codex_multi_role.option import Option, Use

FOUND = "codex_multi_role.settings"
"""Where a context keeps the `Found` values, by option name."""
PREFIX = "CODEX_MULTI_ROLE_"
ASSIGNMENT = re.compile(r"[^=\s][^=]*=")


class Setting(click.Option):
    """An option whose errors name the source of a wrong value; if repeatable, its variable is split as in a shell.

    ``section``: its heading in the ``--help`` of commands with many options, one of `Section` or an extension's own.
    ``is_secret``: `config show` hides it. ``is_key``: of an extension's settings, whether settings files may have it.
    ``is_set_once``: as `Option` has it. ``trust``: a settings file of others may not decide it, as `trust` has
    it.
    """

    def __init__(
        self,
        declarations: Sequence[str],
        section: str | None = None,
        is_secret: bool = False,
        is_key: bool = True,
        trust: bool = False,
        is_set_once: bool = False,
        **keywords: Any,  # noqa: ANN401 - click's own
    ) -> None:
        is_plain_flag = keywords.get("is_flag") and "/" not in declarations[0]
        super().__init__(declarations, **{"show_default": not is_plain_flag, **keywords})
        self.section = section
        self.is_secret = is_secret
        self.is_key = is_key
        self.trust = trust
        self.is_set_once = is_set_once
        self.key = str(self.name)
        self.envvar = PREFIX + self.key.upper()

    def value_from_envvar(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click declares it
        value = self.resolve_envvar_value(ctx)
        if value is None or not self.multiple:
            return super().value_from_envvar(ctx)
        try:
            return shlex.split(value)
        except ValueError as error:
            raise click.BadParameter(
                f"{str(error).lower()}; quote as in a shell", ctx, self, f"{self.envvar} (environment)"
            ) from error

    def get_error_hint(self, ctx: click.Context | None) -> str:
        source = ctx.get_parameter_source(self.key) if ctx else None
        if source is ParameterSource.ENVIRONMENT:
            return f"{self.envvar} (environment)"
        if source is ParameterSource.DEFAULT_MAP:
            found: Found = ctx.meta[FOUND][self.key]  # type: ignore[union-attr]  # there is a context with a source
            return f"{found.name} ({found.path})"
        return " / ".join(f"'{name}'" for name in self.opts)


def flag(name: str, help: str, section: str | None = None, **more: Any) -> Setting:  # noqa: ANN401 - see `Setting`
    """An option without a value."""
    return Setting([name], section, is_flag=True, help=help, **more)


@dataclass(frozen=True)
class Found:
    """A ``value`` of ``setting`` in a settings file, as it would be typed; ``name`` and ``written``: as it is there."""

    value: str | list[str]
    path: Path
    name: str
    setting: Setting
    written: object


def assignments(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Check ``key=value`` texts. Raises `click.BadParameter`."""
    for value in values:
        if not ASSIGNMENT.match(value):
            raise click.BadParameter(f"'{value}' is not of the form key=value", ctx, param)
    return tuple(values)


def finite(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Check a number. Raises `click.BadParameter`."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"'{value}' is not a finite number", ctx, param)
    return value


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the value. Raises `click.BadParameter` if it is blank."""
    if value is not None and not value.strip():
        raise click.BadParameter("must not be empty", ctx, param)
    return value


def report_file(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Return a report's path with its folder resolved. Raises `click.BadParameter` before anything starts.

    A link is rejected: its target could change until the report is written, and would be overwritten.
    """
    if path is None:
        return None
    if not path.parent.is_dir():
        raise click.BadParameter(f"folder '{path.parent}' does not exist", ctx, param)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise click.BadParameter(f"'{path}' is not a regular file", ctx, param)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"'{path}' is not writable", ctx, param)
    return path.parent.resolve() / path.name


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
PATHS: dict[str, click.Path] = {
    "any": click.Path(path_type=Path),
    "folder": FOLDER,
    "file": InputFile(),
    "new file": click.Path(dir_okay=False, path_type=Path),
}
OPEN_FILES = ("-", "/dev/stdin", "/dev/fd/", "/proc/self/fd/")


COMPLETIONS = {"flow": flow_names, "playbook": playbook_names}


def setting_of(option: Option, *, remembered: bool = False) -> Setting:
    """The option of the command line, the environment and settings files.

    ``remembered``: for a command whose default is the value that the run remembers.
    """
    repeatable = "; repeatable." if option.kind in (tuple, dict) else "."
    told = option.help.removesuffix(".") + repeatable
    keywords: dict[str, Any] = {"help": told, "metavar": option.metavar or None, "section": option.section}
    keywords["is_set_once"] = option.is_set_once
    keywords["trust"] = bool(option.use & (Use.TRUST | Use.OUTSIDE | Use.DECIDES))
    keywords |= {"shell_complete": COMPLETIONS.get(option.name), "show_default": option.shown_default or None}
    given = {name: each for name, each in keywords.items() if each} | ({"show_default": False} if remembered else {})
    return Setting(_flags(option), **given, **_values(option))


def _flags(option: Option) -> Sequence[str]:
    flag = f"--{option.name.replace('_', '-')}"
    if option.kind is bool and Use.RESUME in option.use:  # what can be changed later can also be taken back
        return [f"{flag}/--no-{flag.removeprefix('--')}"]
    return option.flags or [flag]


def _values(option: Option) -> dict[str, Any]:
    """The keywords with which click describes the values."""
    default = {} if option.default in (None, "") else {"default": option.default}
    if option.kind in (tuple, dict):
        return {"multiple": True, **({"callback": assignments} if option.metavar == "KEY=VALUE" else {})}
    if option.kind is bool:
        return {"is_flag": True, **default}
    if option.kind is Path:
        return {"type": PATHS[option.path], **default}
    if option.choices:
        return {"type": click.Choice(option.choices), **default}
    if option.range is not None:
        return {"type": _range(option), "callback": finite, **default}
    return {"callback": not_empty, **default}


def _range(option: Option) -> click.IntRange | click.FloatRange:
    assert option.range is not None
    most: Any = None if option.range.maximum == math.inf else option.range.maximum
    kind = click.IntRange if option.kind is int else click.FloatRange
    return kind(option.range.minimum, most, min_open=option.range.above)  # type: ignore[arg-type]  # whole for whole ones


def output_file(*names: str, **keywords: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:  # noqa: ANN401
    """Declare an option for a file that the command writes, as `report_file` allows. ``keywords``: click's own."""
    return click.option(*names, metavar="FILE", type=click.Path(path_type=Path), callback=report_file, **keywords)
