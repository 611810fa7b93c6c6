"""``config show``: each setting's value and where it comes from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from codex_multi_role.cli.lazy_group import LazyCommand, LazyGroup
from codex_multi_role.cli.options import JSON, KNOWN, command
from codex_multi_role.cli.output import put_json, put_table, say
from codex_multi_role.cli.setting import FOUND, Found, Setting
from codex_multi_role.cli.settings import SettingsCommand, find_nearest, settings_of_extensions
from codex_multi_role.host.redaction import MASK, Redactor
from codex_multi_role.host.settings_files import PYPROJECT, SETTINGS_FILE, TABLE, exists, user_file
from codex_multi_role.reading.places import Place

HEADINGS = ("setting", "value", "source")
Row = dict[str, Any]

config = LazyGroup(
    name="config",
    targets={"show": LazyCommand(f"{__name__}:show_config", "Show each setting's value and source.")},
    help="Show each setting and where its value comes from.",
    no_args_is_help=True,
)


@command(JSON, name="show")
def show_config(json: bool) -> None:
    """Show the value of each setting, and its source: an environment variable, a line of a file, or the default.

    Settings are read from codex-multi-role.yaml, or [tool.codex-multi-role] in pyproject.toml, of this folder or the
    nearest one above it in the same repository or below your home folder; then from config.yaml in
    ~/.config/codex-multi-role (or $XDG_CONFIG_HOME/codex-multi-role). A flag comes before all of them.

    \b
    Examples:
      codex-multi-role config show
      CODEX_MULTI_ROLE_CYCLES=5 codex-multi-role config show --json
    """
    rows = Redactor(os.environ).within({row.pop("setting"): row for row in _settings()})
    if json:
        put_json(rows)
        return
    put_table(HEADINGS, [(name, _in_words(row["value"]), row["source"]) for name, row in rows.items()])
    read = [str(path) for path in (find_nearest(), user_file()) if path and exists(path)]
    say(f"settings files: {', '.join(read) or f'none ({SETTINGS_FILE}, {PYPROJECT} or {user_file()})'}")


def _settings() -> Iterator[Row]:
    """The settings of `run`, then those of the commands of extensions that are not the same."""
    settings = [*KNOWN, *settings_of_extensions({each.key for each in KNOWN}).values()]
    every, here = SettingsCommand("settings", known=KNOWN, params=settings), click.get_current_context()
    with every.make_context("settings", [], parent=here) as context:
        yield from [_row(context, setting) for setting in settings]


def _row(context: click.Context, setting: Setting) -> Row:
    value = context.params[setting.key]
    if isinstance(value, Path):
        value = str(value)
    if value is not None and setting.is_secret:
        value = MASK
    return {"setting": setting.key.replace("_", "-"), "value": value, "source": _source(context, setting)}


def _source(context: click.Context, setting: Setting) -> str:
    match context.get_parameter_source(setting.key):
        case ParameterSource.ENVIRONMENT:
            return str(setting.envvar)
        case ParameterSource.DEFAULT_MAP:
            found: Found = context.meta[FOUND][setting.key]
            return f"{found.path}:{_line(found)}"
        case _:
            return "default"


def _line(found: Found) -> int:
    """The line of the setting in its file."""
    if found.path.name == PYPROJECT:
        return _toml_line(found.path.read_text("utf-8").splitlines(), found.name)

    return Place(found.path, (found.name,)).position()[0]


def _toml_line(lines: list[str], name: str) -> int:
    """The line of a key in the settings table, of its own table, or 1 if it is written in yet another way."""
    own_table = re.compile(rf"\s*\[\s*tool\.{TABLE}\.{re.escape(name)}\s*\]")
    key = re.compile(rf"\s*{re.escape(name)}\s*[.=]")
    is_in_table = False
    for number, line in enumerate(lines, 1):
        if own_table.match(line) or (is_in_table and key.match(line)):
            return number
        if line.lstrip().startswith("["):
            is_in_table = bool(re.match(rf"\s*\[\s*tool\.{TABLE}\s*\]", line))
    return 1


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
