"""The team of ``--roles``: how commands name it, and doing something again when its files are saved."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.cli.boundary import complain_about
from codex_multi_role.cli.output import say
from codex_multi_role.errors import UsageError
from codex_multi_role.host.watched_files import WatchedFolders

LOOK_SECONDS = 0.2
WATCH = click.option(
    "--watch", is_flag=True, help="Repeat whenever a file in the roles folder is saved; Ctrl-C to stop."
)


def option_for(roles: Path) -> str:
    """Return `` --roles PATH`` to append to a command; nothing for the default folder."""
    return "" if roles == LOCAL_ROLES else f" --roles {shlex.quote(str(roles))}"


def repeatedly(folder: Path, act: Callable[[], None], *, watch: bool) -> None:
    """Call ``act`` once or, with ``watch``, again whenever a file in ``folder`` or one level below it is saved.

    Raises what ``act`` raises; with ``watch``, prints its `UsageError` and raises one if it cannot watch the folder.
    """
    if not watch:
        act()
        return
    try:
        list(folder.iterdir())
    except OSError as error:
        raise UsageError(f"cannot watch {folder}: {error.strerror}", "Run it without --watch.") from error
    with WatchedFolders(lambda: _folders(folder)) as watched:  # before acting: files saved meanwhile count
        while True:  # waits: for changes, ended by the person's Ctrl-C
            try:
                act()
            except UsageError as error:
                complain_about(error)
            say(f"watching {folder} (Ctrl-C to stop)")
            while not watched.have_changed():  # waits: for a saved file, ended by the person's Ctrl-C
                time.sleep(LOOK_SECONDS)


def _folders(folder: Path) -> Iterator[Path]:
    yield folder
    if folder.is_dir():
        yield from (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
