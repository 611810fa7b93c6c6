"""A click group that imports commands when they are used and has a default command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import click

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.nearest import find_nearest
from codex_multi_role.reading.registry import Registry

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class LazyCommand:
    """A command at ``place`` (``module:name``). ``about`` is its line in ``--help``.

    ``section``: the heading above that line; empty for the name of the extension.
    """

    place: str
    about: str
    section: str = ""


ANYTHING = {"ignore_unknown_options": True}
INSTALLED: Registry[click.Command | LazyCommand] = Registry("command", "codex_multi_role.commands", {})
"""The commands of extensions."""


def load(command: click.Command | LazyCommand) -> click.Command:
    """The command itself, imported if need be."""
    loaded: click.Command = resolve_name(command.place) if isinstance(command, LazyCommand) else command
    return loaded


def ended(name: str, instead: str) -> click.Command:
    """A command that earlier versions had: hidden, and no goal. It only says what to do ``instead``."""

    def refuse(ctx: click.Context, *_: object) -> None:
        raise click.UsageError(f'"{name}" is not a command any more; {instead}', ctx.parent)  # it has no help itself

    given = click.Argument(["given"], nargs=-1, type=click.UNPROCESSED, expose_value=False, callback=refuse)
    return click.Command(name, params=[given], hidden=True, add_help_option=False, context_settings=ANYTHING)


class LazyGroup(click.Group):
    """``targets``: its commands by name, in the order of ``--help``, which imports none of them.

    ``sections``: headings of ``--help`` by the first command below each. ``default``: the command that is meant if the
    first argument is an option or a goal. ``foreign``: our command by a name that people know from other programs.
    ``installed``: the commands of extensions, which are looked up only for a name that is not in ``targets``.
    """

    def __init__(
        self,
        *,
        targets: Mapping[str, click.Command | LazyCommand],
        sections: Mapping[str, str] | None = None,
        default: str = "",
        foreign: Mapping[str, str] | None = None,
        installed: Registry[click.Command | LazyCommand] | None = None,
        **settings: object,
    ) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # click's own keywords, passed through
        self.targets = targets
        self.sections = sections or {}
        self.default = default
        self.foreign = foreign or {}
        self.installed = installed

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Our own, then those of each extension."""
        return [*self.targets, *(name for _, name in sorted((self._extension(name), name) for name in self._others()))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = self._find(cmd_name)
        return None if command is None else load(command)

    def _find(self, name: str) -> click.Command | LazyCommand | None:
        if name in self.targets:
            return self.targets[name]
        return self.installed.find(name) if self.installed and name in self._others() else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.default and args and (self._is_option_of_default(ctx, args[0]) or self._is_goal(args)):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _is_option_of_default(self, ctx: click.Context, first: str) -> bool:
        own = {name for param in self.get_params(ctx) for name in param.opts}
        return first.startswith("-") and first not in own

    def _is_goal(self, args: Sequence[str]) -> bool:
        """Whether the first argument is a goal rather than a command, perhaps a misspelt one."""
        first, *others = args
        if first.startswith("-") or (others and not others[0].startswith("-")):
            return False
        return " " in first or not (self._is_command(first) or self._suggestion(first))

    def _is_command(self, name: str) -> bool:
        return name in self.targets or name in self._others()

    def _others(self) -> list[str]:
        return [name for name in self.installed.names() if name not in self.targets] if self.installed else []

    def _extension(self, name: str) -> str:
        return self.installed.extension(name) if self.installed else ""

    def _section(self, name: str) -> str:
        with suppress(UsageError):  # its line says that it does not load
            command = self.installed.find(name) if self.installed else None
            if isinstance(command, LazyCommand) and command.section:
                return command.section
        return self._extension(name).replace("_", " ").capitalize()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands; the text of ``--help`` names the few options."""
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below the headings of ``sections``."""
        rows: dict[str, list[tuple[str, str]]] = {}
        heading = "Commands"
        for name in self.list_commands(ctx):
            heading = self.sections.get(name, heading)
            if name not in self.targets:
                heading = self._section(name)
            if (words := self._about(name, formatter.width)) is not None:
                rows.setdefault(heading, []).append((name, words))
        width = max(len(name) for commands in rows.values() for name, _ in commands)
        for heading, commands in rows.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), words) for name, words in commands])

    def _about(self, name: str, width: int = 80) -> str | None:
        """The line of a command in ``--help``; None for a hidden one."""
        try:
            command = self._find(name)
        except UsageError as error:  # the extension's fault, which hides no other command
            return str(error)
        if isinstance(command, LazyCommand):
            return command.about
        return None if command is None or command.hidden else command.get_short_help_str(width)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and not self._is_command(args[0]):
            raise click.UsageError(self._unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the options of the default command as well, because its name can be left out."""
        from click.shell_completion import CompletionItem  # here: only a shell that completes needs it

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=words) for name in names if (words := self._about(name)) is not None]
        offered = [*commands, *click.Command.shell_complete(self, ctx, incomplete)]
        command = self.get_command(ctx, self.default) if incomplete.startswith("-") else None
        if command is None:
            return offered
        with command.make_context(self.default, [], parent=ctx, resilient_parsing=True) as inner:
            return [*offered, *command.shell_complete(inner, incomplete)]

    def _unknown(self, name: str) -> str:
        otherwise = "; put a goal in quotes, and options after it" if self.default else ""
        return f'unknown command "{name}"{self._suggestion(name) or otherwise}'

    def _suggestion(self, name: str) -> str:
        found = find_nearest(name, [*self.targets, *self._others(), *self.foreign])
        return "".join(f'; did you mean "{self.foreign.get(each, each)}"?' for each in found)
