"""``completion``: print the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click

from codex_multi_role.errors import UsageError
from codex_multi_role.presentation.wording import PROGRAM

VARIABLE = "_CODEX_MULTI_ROLE_COMPLETE"


@click.command(short_help="Print what makes a shell complete commands, options, runs, flows and roles.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL; it asks this program whenever you press Tab.

    \b
    Examples:
      eval "$(codex-multi-role completion bash)"             in ~/.bashrc; bash 4.4 or later
      eval "$(codex-multi-role completion zsh)"              in ~/.zshrc, after compinit
      codex-multi-role completion fish > ~/.config/fish/completions/codex-multi-role.fish
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    if shell_class is None:  # a click release that no longer supports this shell
        raise UsageError(f"there is no completion for {shell}")
    script = shell_class(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(script.source_template % script.source_vars())
