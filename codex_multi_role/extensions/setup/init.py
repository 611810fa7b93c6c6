"""``init``: write a project's own team, a starter or a copy of all shipped roles, and its settings file."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.cli.options import RUN, RUNS_DIR
from codex_multi_role.cli.output import say
from codex_multi_role.cli.roles import option_for
from codex_multi_role.cli.run_additions import added_settings
from codex_multi_role.cli.setting import FOLDER, Setting
from codex_multi_role.cli.settings import FILE, settings_of_extensions
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.extensions.setup.json_schemas import editor_comment, schema_files
from codex_multi_role.extensions.setup.starter import Starter
from codex_multi_role.option import Use
from codex_multi_role.reading.shipped import STARTERS, definition_folders, list_starters
from codex_multi_role.run_options import added_options

OF_ONE_RUN = frozenset(("goal", "goal_file", "run_id", "json", "quiet", "input", "yes", "dry_run"))
"""Settings that make no sense for every run in a folder."""
SETTINGS = f"""\
# Settings for codex-multi-role, in this folder and below: any option of `codex-multi-role run`, without its dashes.
# A flag overrides an environment variable (CODEX_MULTI_ROLE_<NAME>), which overrides this file.
# Paths are relative to this file, so every folder of the project has the same team and the same runs.
roles: {LOCAL_ROLES}
runs-dir: {RUNS_DIR.default}
"""


PURPOSES = list(list_starters())


@click.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=Path())
@click.option(
    "--for",
    "purpose",
    metavar="PURPOSE",
    type=click.Choice(PURPOSES),
    help=f"What the team is for: {', '.join(PURPOSES)}.",
)
@click.option("--shipped", is_flag=True, help="Copy all shipped roles, flows and playbooks.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: Path, purpose: str | None, shipped: bool, force: bool) -> None:
    """Create a team in DIR/roles for you to edit, and its settings in DIR/codex-multi-role.yaml.

    DIR defaults to the current folder. On a terminal, `init` asks what the team is for and writes a small catalog for
    that purpose. Otherwise, without --for, it copies all shipped roles, flows and playbooks. If any of the files
    exists, nothing is written unless --force is given.

    \b
    Examples:
      codex-multi-role init --for coding
      codex-multi-role init --shipped ../shop
    """
    if purpose and shipped:
        raise UsageError("--for and --shipped exclude each other", "Use one of them.")
    if not (purpose or shipped) and sys.stdin.isatty() and sys.stderr.isatty():
        purpose = _ask()
    files = dict(starter_files(purpose) if purpose else _shipped_files())
    _write_all({folder / name: content for name, content in with_editor_comments(files).items()}, force)
    roles = folder / LOCAL_ROLES
    say(f"next: edit {roles}, then run `codex-multi-role roles validate{option_for(roles)}`")
    say(f"to try it without a model: `codex-multi-role --playbook auto{option_for(roles)}`")


def _ask() -> str:
    say("What is the team for?")
    for number, (name, folder) in enumerate(list_starters().items(), 1):
        say(f"  {number}  {name:<14} {Starter.load(folder).purpose}")
    names = [*map(str, range(1, 1 + len(PURPOSES))), *PURPOSES]
    choice = click.Choice(names, case_sensitive=False)
    prompt = "A number or a name"
    chosen = str(click.prompt(prompt, type=choice, show_choices=False, default=PURPOSES[0], err=True))
    return PURPOSES[int(chosen) - 1] if chosen.isdecimal() else chosen


def _write_all(contents: Mapping[Path, bytes], force: bool) -> None:
    existing = [path for path in contents if path.exists()]
    if existing and not force:
        names = "".join(f"\n  {path}" for path in existing)
        raise UsageError(f"nothing was written because these files exist:{names}", "--force overwrites them.")
    for path, content in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)  # not atomically: nothing reads them yet, and their mode is the user's choice
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        say(f"{'overwrote' if path in existing else 'wrote'} {path}")


def starter_files(purpose: str) -> Iterator[tuple[Path, bytes]]:
    """Yield path and content of each file, relative to the project's folder."""
    folder = list_starters()[purpose]
    starter = Starter.load(folder)
    for file in starter.files(folder):
        yield LOCAL_ROLES / file.name, file.read_bytes()
    yield Path(FILE), f"{SETTINGS}flow: {starter.flow}\n".encode()


def with_editor_comments(files: Mapping[Path, bytes]) -> dict[Path, bytes]:
    """``files`` with a first line by which editors find the schema of each, and these schemas."""
    kinds = {path: kind for path, content in files.items() if (kind := _kind_of(path, content))}
    commented = {path: editor_comment(path, LOCAL_ROLES, kind).encode() for path, kind in kinds.items()}
    whole = {path: commented.get(path, b"") + content for path, content in files.items()}
    return whole | schema_files(LOCAL_ROLES, sorted({*kinds.values()}))


def _kind_of(path: Path, content: bytes) -> str:
    """The kind of schema for a file of a project; empty for the settings of checks, which have no name."""
    if path == Path(FILE):
        return "settings"
    if path.parent == LOCAL_ROLES:
        return "catalog" if path.stem == "catalog" else "role" if re.search(rb"^name:", content, re.MULTILINE) else ""
    return {"flows": "flow", "playbooks": "playbook"}.get(path.parent.name, "")


def _shipped_files() -> Iterator[tuple[Path, bytes]]:
    folders = reversed(tuple(definition_folders()))
    files = {path.relative_to(folder): path for folder in folders for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files):
        if name.parts[0] != STARTERS:
            yield LOCAL_ROLES / name, files[name].read_bytes()
    yield Path(FILE), settings_file().encode()


def settings_file() -> str:
    """Return the settings file with every key commented out and its default beside it."""
    lines = [
        "# Settings for codex-multi-role in this folder and below. Uncomment a line to set it.",
        "# A flag overrides an environment variable (CODEX_MULTI_ROLE_<NAME>), which overrides this file.",
        "# Paths are relative to this file.",
    ]
    known = {each.key: each for each in RUN}
    only_new = {name for name, each in added_options().items() if not each.use & Use.ANYWHERE}
    of_one_run = {*OF_ONE_RUN, *only_new, *(each.key for each in added_settings())}
    for setting in {**known, **settings_of_extensions(known)}.values():
        if setting.key not in of_one_run and not setting.is_secret:
            lines += ["", *textwrap.wrap(setting.help or "", 100, initial_indent="# ", subsequent_indent="# ")]
            lines.append(f"# {setting.key.replace('_', '-')}: {_example(setting)}")
    return "\n".join(lines) + "\n"


def _example(setting: Setting) -> str:
    if setting.multiple:
        return "[key=value]"
    if setting.is_flag:
        return str(bool(setting.default)).lower()
    if isinstance(setting.default, Path | int | float | str):
        return str(setting.default)
    return str(setting.metavar or setting.type.name).upper()
