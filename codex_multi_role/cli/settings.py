"""Options that are also environment variables and keys of ``codex-multi-role.yaml``.

Precedence: flag, environment, file, default. The file is flat: one key per option, in snake or kebab case.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from codex_multi_role.cli.output import say
from codex_multi_role.errors import DefinitionError
from codex_multi_role.run_options import SETTINGS_FILE

FILE = SETTINGS_FILE
PREFIX = "CODEX_MULTI_ROLE_"
OTHER_VARIABLES = frozenset(f"{PREFIX}{name}" for name in ("DEBUG", "COMMAND", "RUN", "TESTS_OVERDUE", "MEASURING"))
"""Variables that are not settings: one for people, and those of the processes of a run."""
HELP_NAMES = frozenset({"-h", "--help"})
ASSIGNMENT = re.compile(r"[^=\s][^=]*=")


class Setting(click.Option):
    """An option whose errors name the source of a wrong value; if repeatable, its variable is split as in a shell."""

    def __init__(self, declarations: Sequence[str], **keywords: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(declarations, **{"show_default": not keywords.get("is_flag"), **keywords})
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
            return f"{self.key.replace('_', '-')} ({FILE})"
        return " / ".join(f"'{name}'" for name in self.opts)


class SettingsCommand(click.Command):
    """A command whose settings may come from the file. ``known``: the settings of all commands, which are its keys."""

    def __init__(self, *args: Any, known: Sequence[Setting], **keywords: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **keywords)
        self.known = {setting.key: setting for setting in known}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if HELP_NAMES.isdisjoint(args):
            ctx.default_map = read_file(Path(FILE), self.known)
            _warn_of_unknown_variables(self.known)
        return super().parse_args(ctx, args)


def _warn_of_unknown_variables(known: Mapping[str, Setting]) -> None:
    """Report variables that look like settings but are not; other programs may have set them, so nothing fails."""
    names = [f"{PREFIX}{key.upper()}" for key in known]
    unknown = {name for name in os.environ if name.startswith(PREFIX)} - {*names} - OTHER_VARIABLES
    for name in sorted(unknown):
        from codex_multi_role.reading.nearest import did_you_mean  # here: only a mistake needs it

        say(f'warning: unknown environment variable "{name}"{did_you_mean(name, names)}')


def read_file(path: Path, known: Mapping[str, Setting]) -> dict[str, Any]:
    """Read the file's values by option name; empty without a file. A key without a value counts as not given.

    Raises `DefinitionError` with file and key.
    """
    if not path.exists():
        return {}
    from codex_multi_role.reading.yaml_source import load_yaml, read_text  # here: without a file, YAML is not needed

    if all(line.strip().startswith("#") for line in read_text(path).splitlines() if line.strip()):
        return {}
    content = load_yaml(path)
    if not isinstance(content, Mapping):
        raise DefinitionError(f"{path}:1:1: must be a mapping, `key: value` lines")
    values = {}
    for written, value in content.items():
        key = "yes" if written is True else str(written)  # YAML reads a plain yes as true
        setting = _find(path, key, known)
        if value is not None:
            values[setting.key] = _as_typed(path, key, value, setting.multiple)
    return values


def _find(path: Path, key: str, known: Mapping[str, Setting]) -> Setting:
    name = key.replace("-", "_")
    if name in known:
        return known[name]
    from codex_multi_role.reading.nearest import no_such  # as above

    message, hint = no_such("setting", key, [name.replace("_", "-") for name in known])
    from codex_multi_role.reading.places import Place

    raise Place(path).key(key).error(message, hint)


def _as_typed(path: Path, key: str, value: object, multiple: bool) -> str | list[str]:
    """Convert to what would be typed: one text, or several for a repeatable option (a mapping gives ``key=value``)."""
    if not multiple:
        return _text(path, key, value)
    if isinstance(value, Mapping):
        return [f"{name}={_text(path, f'{key}.{name}', item)}" for name, item in value.items()]
    if isinstance(value, list):
        return [_text(path, f"{key}[{index}]", item) for index, item in enumerate(value)]
    return [_text(path, key, value)]


def _text(path: Path, place: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    from codex_multi_role.reading.places import Place  # as above

    key = re.split(r"[.\[]", place)[0]
    raise DefinitionError(f"{Place(path).key(key)}: {place}: must be one text, number, true or false")


def assignments(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Check ``key=value`` texts. Raises `click.BadParameter`."""
    for value in values:
        if not ASSIGNMENT.match(value):
            raise click.BadParameter(f"'{value}' does not look like key=value", ctx, param)
    return tuple(values)


def finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Check a number of seconds. Raises `click.BadParameter`."""
    if not math.isfinite(value):
        raise click.BadParameter(f"'{value}' is not a number of seconds", ctx, param)
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
