"""``--watch``: doing something again whenever the files it is about are saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from codex_multi_role.cli.boundary import complain
from codex_multi_role.cli.streams import say
from codex_multi_role.errors import UsageError
from codex_multi_role.watched_files import Changes, watched

LOOK_SECONDS = 60.0
WATCH = click.option(
    "--watch", is_flag=True, help="Do it again whenever a file of the roles folder is saved; Ctrl-C ends."
)


def repeatedly(folder: Path, act: Callable[[], None], *, watch: bool) -> None:
    """Do it once or, with ``watch``, again whenever something in ``folder`` or one level below it is saved."""
    if not watch:
        act()
        return
    changes = Changes()
    with watched([folder, *_folders_in(folder)], changes):
        while True:
            try:
                act()
            except UsageError as error:
                complain(str(error), error.hint, error.exit_code)
            say(f"watching {folder}; Ctrl-C ends")
            while not changes.wait(LOOK_SECONDS):
                pass


def _folders_in(folder: Path) -> Iterable[Path]:
    return (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
