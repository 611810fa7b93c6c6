"""``schema``: the JSON Schema of a file that people write, or of a run's events."""

from __future__ import annotations

import click

from codex_multi_role.cli.json_schemas import KINDS, schema_text
from codex_multi_role.cli.output import put_text


@click.command(short_help="Print the JSON Schema of a kind of file, or of a run's events.")
@click.argument("kind", type=click.Choice(list(KINDS)))
def schema(kind: str) -> None:
    """Print the JSON Schema of KIND, for editors and other programs. `events` describes one line of `--json`.

    `init`, `roles new` and `flows new` write a comment into each file by which editors find its schema.

    \b
    Examples:
      codex-multi-role schema flow > flow.json
    """
    put_text(schema_text(kind))
