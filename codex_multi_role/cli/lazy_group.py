"""A click group that imports commands when they are used and has a default command."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

import click

from codex_multi_role.reading.nearest import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """``targets``: ``module:attribute`` by command name; options without a command belong to ``default``."""

    def __init__(self, *, targets: Mapping[str, str], default: str = "", **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # click's own keywords, passed through
        self.targets = targets
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.targets:
            return None
        module, attribute = self.targets[cmd_name].split(":")
        return cast(click.Command, getattr(import_module(module), attribute))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for param in self.get_params(ctx) for name in param.opts}
        if self.default and args and args[0].startswith("-") and args[0] not in own:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.targets and not ctx.resilient_parsing:
            raise click.UsageError(self._unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the options of the default command as well, because its name can be left out."""
        offered = super().shell_complete(ctx, incomplete)
        command = self.get_command(ctx, self.default) if incomplete.startswith("-") else None
        if command is None:
            return offered
        with command.make_context(self.default, [], parent=ctx, resilient_parsing=True) as inner:
            return [*offered, *command.shell_complete(inner, incomplete)]

    def _unknown(self, name: str) -> str:
        otherwise = "; a goal is given with --goal" if self.default else ""
        return f'there is no command "{name}"{did_you_mean(name, self.targets) or otherwise}'
