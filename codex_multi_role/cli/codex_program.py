"""``codex``: call the Codex binary."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from codex_multi_role.codex.locator import find_codex


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def codex(arguments: Sequence[str]) -> None:
    """Run the Codex binary that runs use, and pass ARGUMENTS to it unchanged.

    \b
    Examples:
      codex-multi-role codex login
      codex-multi-role codex --version
    """
    binary = find_codex(None, os.environ)
    os.execv(binary, [str(binary), *arguments])
