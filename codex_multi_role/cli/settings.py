"""Options that are also environment variables and keys of settings files.

Precedence: flag, environment, the nearest file, the user's file, default. A file is flat: one key per option, in snake
or kebab case. Paths in it are relative to its folder.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from codex_multi_role.cli.lazy_group import INSTALLED, load
from codex_multi_role.cli.output import say
from codex_multi_role.cli.run_additions import EXTENDED, FINDERS, PLACES, added_settings, report_failure
from codex_multi_role.cli.setting import FOUND, PREFIX, Found, Setting, setting_of
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError
from codex_multi_role.host.settings_files import (
    PYPROJECT,
    SETTINGS_FILE,
    exists,
    nearest_settings,
    settings_table,
    user_file,
)
from codex_multi_role.host.workflow_log import runs_here
from codex_multi_role.option import Section, Use
from codex_multi_role.reading.nearest import did_you_mean, no_such
from codex_multi_role.run_folder.folder import PROGRAM
from codex_multi_role.run_options import added_options, is_playbook_file

FILE = SETTINGS_FILE
OTHER_VARIABLES = frozenset(
    f"{PREFIX}{name}" for name in ("DEBUG", "TRUST", "COMMAND", "RUN", "TESTS_OVERDUE", "MEASURING")
)
"""Variables that are not settings: two for people, and those of the processes of a run."""
HELP_NAMES = frozenset({"-h", "--help"})
OTHER_OPTIONS = "Options"
LONG_LIST = 15
"""Maximum number of options that ``--help`` lists without headings, and with those that are set once."""
SET_ONCE = "Mostly set once per project:"
WORKSPACE = "workspace"
WORKSPACE_PARTS = {"path": WORKSPACE, "copy": "workspace_copy", "setup": "workspace_setup"}
"""The setting ``workspace`` may be a mapping: its keys, and the settings that they stand for."""


class SettingsCommand(click.Command):
    """A command whose settings may come from files, with the options that extensions add to it.

    ``known``: the settings of all commands of the core, which are keys of the file as those of extensions are.
    ``finds``: the run may be one that extensions find elsewhere. ``works``: it works on a run, with what extensions
    add, as `run_additions` says. ``use``: which options that they add to a run it has, `Use(0)` all of them; None for
    none. These are looked up only if an argument, a variable or a key of a settings file is none of the core's.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's own
        known: Sequence[Setting],
        finds: bool = False,
        works: bool = False,
        use: Use | None = None,
        **keywords: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(*args, **keywords)
        self.known = {setting.key: setting for setting in known}
        self.finds, self.works, self.use = finds, works, use

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below their headings, ours last; a short list has no headings."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option) and not each.hidden]
        is_long = len(options) > LONG_LIST
        once = [each for each in options if is_long and isinstance(each, Setting) and each.is_set_once]
        others = (each.section for each in options if isinstance(each, Setting) and each.section not in [*Section])
        headings = (OTHER_OPTIONS, *filter(None, others), *Section)
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in headings}
        for option in options:
            own = option.section if isinstance(option, Setting) and is_long else None
            is_help = option is self.get_help_option(ctx) and is_long
            if option not in once and (record := option.get_help_record(ctx)):
                rows[own or (Section.OUTPUT if is_help else OTHER_OPTIONS)].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
        if once:
            named = f"{SET_ONCE} {', '.join(each.opts[-1] for each in once)}"
            formatter.write(f"\n{fill(named, formatter.width, break_on_hyphens=False)}\n")

    @property
    def _places(self) -> list[Setting]:
        return [each.setting for each in FINDERS.that_load() if self.finds]

    def added_options(self, ctx: click.Context) -> list[Setting]:
        """The options that extensions add to a run and to this command, if they were looked up.

        A run from elsewhere may have one that only counts if it is given as well.
        """
        if self.use is None or not ctx.meta.get(EXTENDED, True):
            return []
        has = {each.key for each in self._places}
        use = self.use | Use.TRUST if self.use in (Use.RESUME, Use.FORK) else self.use
        added = [each for each in added_options().values() if not use or use & each.use]
        settings = [(each, setting_of(each, remembered=bool(use))) for each in added if each.name not in has]
        for each, setting in settings:
            setting.hidden = self.use not in each.use
        return [setting for _, setting in settings]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Those of extensions come after our settings, before the arguments and what only this command has."""
        params = super().get_params(ctx)
        if not self._is_extended or not ctx.meta.get(EXTENDED, True):
            return params
        arguments = (index for index, param in enumerate(params) if isinstance(param, click.Argument))
        end = next(arguments, len(self.params))
        added = [*self._places, *([*self.added_options(ctx), *added_settings()] if self.works else ())]
        return [*params[:end], *(each for each in added if each.key not in self.known), *params[end:]]

    @property
    def _is_extended(self) -> bool:
        return self.finds or self.works

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self._is_extended:
            own = {name for param in self.params for name in (*param.opts, *param.secondary_opts)}
            given = {arg.partition("=")[0] for arg in args if arg.startswith("-") and arg != "-"}
            ctx.meta[EXTENDED] = bool(given - own) or ctx.resilient_parsing
        if HELP_NAMES.isdisjoint(args):
            has_others = self.read_settings(ctx)
            if self._is_extended:
                ctx.meta[EXTENDED] = ctx.meta[EXTENDED] or has_others or (self.works and runs_here())
        return super().parse_args(ctx, args)

    def read_settings(self, ctx: click.Context) -> bool:
        """Read files and check variables; return whether any of them are not settings of the core."""
        is_first = FOUND not in ctx.meta and not ctx.resilient_parsing
        ctx.meta[FOUND] = read_files(self.known, say if is_first else lambda _: None)
        ctx.default_map = {key: found.value for key, found in ctx.meta[FOUND].items()}
        unknown = _unknown_variables(self.known)
        if unknown and _unknown_variables({**self.known, **settings_of_runs()}):
            _warn_of_unknown_variables({**self.known, **settings_of_extensions(self.known)})
        return bool(unknown or ctx.meta[FOUND].keys() - self.known.keys())

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click declares it
        try:
            if self.finds and ctx.meta[EXTENDED]:
                places = [(each, ctx.params.pop(each.setting.key)) for each in FINDERS.that_load()]
                ctx.meta[PLACES] = [(finder, value) for finder, value in places if value is not None]
            return super().invoke(ctx)
        except CodexMultiRoleError as error:
            if self.works:
                report_failure(ctx, error)
            raise


def added_names(ctx: click.Context) -> list[str]:
    """The names of the options that extensions add to a run and to the command of ``ctx``."""
    return [each.key for each in ctx.command.added_options(ctx)] if isinstance(ctx.command, SettingsCommand) else []


def settings_of_runs() -> dict[str, Setting]:
    """The settings of runs, and of places of runs, that extensions add, by their keys."""
    places = (each.setting for each in FINDERS.that_load())
    settings = (*places, *map(setting_of, added_options().values()), *added_settings())
    return {each.key: each for each in settings if each.is_key}


def settings_of_extensions(known: Container[str]) -> dict[str, Setting]:
    """The settings that extensions add to those with the keys ``known``, by their keys.

    Looks up all of them and imports their commands, which takes a while.
    """
    params = (param for each in INSTALLED.that_load() for param in load(each).params)
    of_commands = {param.key: param for param in params if isinstance(param, Setting) and param.is_key}
    return {key: each for key, each in {**of_commands, **settings_of_runs()}.items() if key not in known}


def read_files(known: Mapping[str, Setting], report: Callable[[str], object]) -> dict[str, Found]:
    """Read the nearest settings file and, for what it does not set, the user's. Raises `DefinitionError`.

    What may be somebody else's and needs a word is left out, and reported in one line.
    """
    nearest = find_nearest()
    found = read_file(nearest, known) if nearest else {}
    if nearest and found:
        from codex_multi_role.cli.trust import left_out  # here: git is not needed without a file

        if left := left_out(nearest, found):
            names = ", ".join(each.replace("_", "-") for each in left)
            report(f"warning: {nearest}: left out until you trust them: {names}; read the file, then `{PROGRAM} trust`")
            found = {name: each for name, each in found.items() if name not in left}
    return {**read_file(user_file(), known), **found}


def find_nearest() -> Path | None:
    """Find the nearest settings file: relative if it is in the current folder. Raises `DefinitionError`."""
    try:
        here = Path.cwd()
        path = nearest_settings(here)
    except FileNotFoundError:  # the current folder has been deleted
        return None
    except ValueError as error:
        raise DefinitionError(str(error)) from error
    return path and (Path(path.name) if path.parent == here else path)


def _unknown_variables(known: Mapping[str, Setting]) -> set[str]:
    names = {f"{PREFIX}{key.upper()}" for key in known}
    return {name for name in os.environ if name.startswith(PREFIX)} - names - OTHER_VARIABLES


def _warn_of_unknown_variables(known: Mapping[str, Setting]) -> None:
    """Report variables that look like settings but are not; other programs may have set them, so nothing fails."""
    names = [f"{PREFIX}{key.upper()}" for key in known]
    for name in sorted(_unknown_variables(known)):
        say(f'warning: unknown environment variable "{name}"{did_you_mean(name, names)}')


def read_file(path: Path, known: Mapping[str, Setting]) -> dict[str, Found]:
    """Read the file's values by option name; empty without a file. A key without a value counts as not given.

    ``workspace`` may be a mapping of `WORKSPACE_PARTS`.

    Raises one `DefinitionError` for all mistakes, with file and key.
    """
    if not (content := _content(path)):
        return {}
    from codex_multi_role.reading.places import Problems  # here: without a file, YAML is not needed

    values, problems = {}, Problems()
    for written, value in content.items():
        key = "yes" if written is True else str(written)  # YAML reads a plain yes as true
        parts = value.items() if key == WORKSPACE and isinstance(value, Mapping) else [(None, value)]
        for part, given in parts:
            with problems.collected():
                name, place = (key, key) if part is None else _of_workspace(path, str(part))
                setting = _find(path, name, known)
                if given is not None:
                    values[setting.key] = Found(_as_typed(path, place, given, setting), path, key, setting, given)
    problems.raise_found()
    return values


def _content(path: Path) -> Mapping[Any, object]:
    if path.name == PYPROJECT:
        return settings_table(path) or {}
    if not exists(path):
        return {}
    from codex_multi_role.reading.yaml_source import load_yaml, read_text  # as above

    if all(line.strip().startswith("#") for line in read_text(path).splitlines() if line.strip()):
        return {}
    content = load_yaml(path)
    if not isinstance(content, Mapping):
        raise DefinitionError(f"{path}:1:1: must be a mapping, `key: value` lines")
    return content


def _of_workspace(path: Path, part: str) -> tuple[str, str]:
    """The setting of a key below ``workspace``, and that key's full name. Raises `DefinitionError`."""
    if part in WORKSPACE_PARTS:
        return WORKSPACE_PARTS[part], f"{WORKSPACE}.{part}"
    raise _error(path, (WORKSPACE, part), *no_such("key", part, [*WORKSPACE_PARTS]))


def _find(path: Path, key: str, known: Mapping[str, Setting]) -> Setting:
    name = key.replace("-", "_")
    if name not in known:
        known = {**known, **settings_of_runs()}
    if name not in known:
        known = {**known, **settings_of_extensions(known)}
    if name in known:
        return known[name]
    raise _error(path, (key,), *no_such("setting", key, [name.replace("_", "-") for name in known]))


def _error(path: Path, keys: Sequence[str], message: str, hint: str = "") -> DefinitionError:
    """The mistake at the place of the last key, as far as that is known."""
    if path.name == PYPROJECT:
        return DefinitionError(f"{path}: {keys[0]}: {message}", hint)
    from codex_multi_role.reading.places import Place  # as above

    return Place(path, tuple(keys[:-1])).key(keys[-1]).error(message, hint)


def _as_typed(path: Path, key: str, value: object, setting: Setting) -> str | list[str]:
    """Convert to what would be typed: one text, or several for a repeatable option (a mapping gives ``key=value``)."""
    if not setting.multiple:
        return _located(path.parent, setting, _text(path, key, value))
    if isinstance(value, Mapping):
        return [f"{name}={_text(path, f'{key}.{name}', item)}" for name, item in value.items()]
    if isinstance(value, list):
        return [_text(path, f"{key}[{index}]", item) for index, item in enumerate(value)]
    return [_text(path, key, value)]


def _located(folder: Path, setting: Setting, text: str) -> str:
    """Return the text; a path in it relative to ``folder``, with ``~`` expanded, and a program's name with its folder.

    A name is never looked for in the current folder, which may hold what a model wrote.
    """
    is_bare = os.sep not in text
    if setting.key == "playbook":
        is_path = is_playbook_file(text)
    else:
        is_path = isinstance(setting.type, click.Path) and text != "-"
    if not is_path:
        return text
    path = folder / os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises for an unknown user
    if setting.key == "codex_bin" and is_bare and not path.exists():
        return shutil.which(text) or str(path)
    return str(path)


def _text(path: Path, place: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    from codex_multi_role.reading.places import Place  # as above

    key = re.split(r"[.\[]", place)[0]
    raise Place(path).key(key).error(f"{place}: must be one text, number, true or false")
