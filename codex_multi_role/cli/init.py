"""``init``: a project's own copy of the roles, flows and playbooks, and its settings file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from codex_multi_role.cli.options import FOLDER, RUN
from codex_multi_role.cli.settings import FILE, Setting
from codex_multi_role.cli.streams import say
from codex_multi_role.errors import StorageError, UsageError

NOT_IN_THE_FILE = frozenset({"goal", "goal_file", "run_id", "json", "quiet", "input", "yes"})
ROLES_FOLDER = "roles"


@click.command(short_help="Copy the shipped roles and flows into a project, to edit them.")
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=Path())
@click.option("--force", is_flag=True, help="Overwrite files that are there already.")
def init(folder: Path, force: bool) -> None:
    """Copy the shipped roles, flows and playbooks to DIR/roles and write DIR/codex-multi-role.yaml.

    DIR is the current folder unless given. Files that exist are left alone, and nothing is written, without --force.
    """
    contents = {folder / name: content for name, content in _contents()}
    existing = [path for path in contents if path.exists()]
    if existing and not force:
        names = "".join(f"\n  {path}" for path in existing)
        raise UsageError(f"nothing was written, for these files exist:{names}", "--force overwrites them.")
    for path, content in contents.items():
        _write(path, content)
        say(f"{'overwrote' if path in existing else 'wrote'} {path}")
    say(f"next: edit {folder / ROLES_FOLDER}, then `codex-multi-role roles validate`")


def _contents() -> Iterator[tuple[Path, bytes]]:
    from codex_multi_role.catalog import packaged_roles  # here: the catalog brings pydantic

    source = packaged_roles()
    for path in sorted(source.rglob("*")):
        if path.is_file():
            yield Path(ROLES_FOLDER) / path.relative_to(source), path.read_bytes()
    yield Path(FILE), settings_file().encode()


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def settings_file() -> str:
    """The settings file with every key commented out, its default beside it."""
    lines = [
        "# Settings for codex-multi-role in this folder. Take the # from a line to set it.",
        "# A flag wins over an environment variable (CODEX_MULTI_ROLE_<NAME>), and that over this file.",
    ]
    for setting in RUN:
        if setting.key not in NOT_IN_THE_FILE:
            lines += ["", *textwrap.wrap(setting.help or "", 100, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"# {setting.key.replace('_', '-')}: {_example(setting)}")
    return "\n".join(lines) + "\n"


def _example(setting: Setting) -> str:
    if setting.multiple:
        return "[key=value]"
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    if isinstance(setting.default, Path | int | float | str):
        return str(setting.default)
    return str(setting.metavar or setting.type.name).upper()
