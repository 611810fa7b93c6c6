"""``trust``: which settings that may be somebody else's need a word of this user, and whether it was given.

A file that git tracks came with the repository, and one in a folder without git came from anywhere. What is not tracked
was written here. The word is a digest of these values, in the user's state folder, so that it holds until they change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from codex_multi_role.cli.options import KNOWN
from codex_multi_role.cli.output import put_line, say
from codex_multi_role.cli.setting import PREFIX, Found
from codex_multi_role.cli.settings import find_nearest, read_file
from codex_multi_role.errors import CodexMultiRoleError, UsageError
from codex_multi_role.host.redaction import MASK
from codex_multi_role.host.settings_files import SETTINGS_FILE, holds_settings
from codex_multi_role.host.user_cache import expanded, is_noted, note
from codex_multi_role.option import as_typed
from codex_multi_role.reading.registry import hint
from codex_multi_role.run_options import HARMLESS
from codex_multi_role.workspace.created_files import folders_below
from codex_multi_role.workspace.git import UserGit
from codex_multi_role.workspace.paths import is_git_folder
from codex_multi_role.workspace.repository import top_around

VARIABLE = f"{PREFIX}TRUST"
"""Set to true without anybody to ask, as in CI: every settings file counts."""
CONFIG = "config"
GOAL = "goal"
"""Only a model reads its text, so no address in it needs a word."""
TRUE = ("1", "true", "yes", "on")


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


def needing(found: Mapping[str, Found]) -> dict[str, object]:
    """What is written for settings that name a program, leave the sandbox, answer questions or reach elsewhere."""
    return {name: each.written for name, each in found.items() if _needs_word(each)}


def left_out(file: Path, found: Mapping[str, Found]) -> list[str]:
    """Those settings ``found`` in ``file`` that need a word which was not given."""
    values = needing(found)
    is_trusted = os.environ.get(VARIABLE, "").lower() in TRUE or is_noted("trusted", _place(file), values)
    return [] if not values or is_trusted or _is_own(file) else [*values]


def _needs_word(found: Found) -> bool:
    setting, folder = found.setting, found.path.parent
    texts = [found.value] if isinstance(found.value, str) else found.value
    if setting.trust:
        harmless = HARMLESS if setting.key == CONFIG else "$."
        return any(text != str(setting.default).lower() and not re.match(harmless, text) for text in texts)
    places = (place for text in texts for place in (text, text.partition("=")[2]))
    return setting.key != GOAL and any(_leads_out(place, folder) for place in places)


def _leads_out(text: str, folder: Path) -> bool:
    """Whether a path or an address leads out of ``folder``; names, numbers and patterns do not."""
    top = Path(os.path.realpath(folder))
    real = Path(os.path.realpath(top / expanded(text.replace("\0", ""))))
    return "://" in text or not real.is_relative_to(top) or any(map(is_git_folder, real.relative_to(top).parts))


def set_trusted(file: Path, values: Mapping[str, object] | None) -> None:
    """Let the settings ``values`` in ``file`` count from now on, or none of them. Raises `StorageError`."""
    note("trusted", _place(file), values)


def _place(file: Path) -> Path:
    return Path(os.path.realpath(file.parent)) / file.name


def _is_own(file: Path) -> bool:
    """Whether this user wrote it: it is in a repository, and git does not track it, in any case of its name."""
    place = _place(file)
    top = top_around(place.parent)
    if top is None:
        return False
    try:
        pattern = f":(top,icase,literal){place.relative_to(top)}"
        return not UserGit(top / ".git", top).run("ls-files", "--cached", "-z", "--", pattern).stdout
    except CodexMultiRoleError:  # git cannot tell
        return False
