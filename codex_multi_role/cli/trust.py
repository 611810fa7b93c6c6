"""``trust``: let settings that came with a repository name programs and the like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from codex_multi_role.cli.options import KNOWN
from codex_multi_role.cli.output import put_line, say
from codex_multi_role.cli.settings import find_nearest, read_file
from codex_multi_role.cli.trusted_settings import needing, set_trusted
from codex_multi_role.errors import UsageError
from codex_multi_role.host.redaction import MASK
from codex_multi_role.host.settings_files import SETTINGS_FILE, holds_settings
from codex_multi_role.option import as_typed
from codex_multi_role.reading.registry import hint
from codex_multi_role.workspace.created_files import folders_below
from codex_multi_role.workspace.repository import top_around


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Every settings file in this repository, for example in CI.")
@click.option("--revoke", is_flag=True, help="Leave these settings out again.")
def trust(is_all: bool, revoke: bool) -> None:
    """Let the settings file here name programs, leave the sandbox, answer questions and reach elsewhere.

    Such settings of a file that git tracks, or outside of a repository, may be somebody else's: commands leave them out
    and say so. Read the file first. Your word holds until one of these settings changes.

    In CI, CODEX_MULTI_ROLE_TRUST=true does the same for all files.

    \b
    Examples:
      codex-multi-role trust
      codex-multi-role trust --all
      codex-multi-role trust --revoke
    """
    nearest = find_nearest()
    files = [*_all_files()] if is_all else [nearest] if nearest else []
    if not files:
        raise UsageError("no settings file here or above", hint("settings_files"))
    for file in files:
        if revoke:
            set_trusted(file, None)
            say(f"{file}: no longer trusted")
        else:
            _trust(file)


def _all_files() -> Iterator[Path]:
    """The settings files of the repository, or below the current folder."""
    for folder, names in folders_below(top_around(Path.cwd()) or Path.cwd(), ()):
        projects = (folder / name for name in sorted(names))
        yield from (path for path in projects if path.name == SETTINGS_FILE or holds_settings(path))


def _trust(file: Path) -> None:
    found = read_file(file, {each.key: each for each in KNOWN})
    values = needing(found)
    set_trusted(file, values)
    say(f"{file}: {'trusted:' if values else 'nothing needs to be trusted'}")
    for name, value in values.items():
        put_line(f"  {name.replace('_', '-')}: {MASK if found[name].setting.is_secret else as_typed(value)}")
