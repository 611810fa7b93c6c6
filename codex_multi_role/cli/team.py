"""The team of ``--roles``: its catalog, how commands name it, and doing something again when its files are saved."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codex_multi_role.cli.boundary import complain_about
from codex_multi_role.cli.output import say
from codex_multi_role.errors import UsageError
from codex_multi_role.host.watched_files import Changes, watched
from codex_multi_role.run_options import LOCAL_ROLES

if TYPE_CHECKING:
    from codex_multi_role.catalog import RoleSpecCatalog

LOOK_SECONDS = 60.0
WATCH = click.option(
    "--watch", is_flag=True, help="Repeat whenever a file in the roles folder is saved; Ctrl-C to stop."
)


def open_catalog(given: Path | None) -> RoleSpecCatalog:
    """Load the catalog of ``--roles``, otherwise of ./roles, otherwise the shipped one. Raises `UsageError`."""
    from codex_multi_role.lifecycle.definitions import load_catalog  # here: `--help` should not load the catalog

    return load_catalog(given)


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
    while True:
        with _watching(folder) as changes:  # before acting: files saved meanwhile count
            try:
                act()
            except UsageError as error:
                complain_about(error)
            say(f"watching {folder} (Ctrl-C to stop)")
            while not changes.wait(LOOK_SECONDS):
                pass


@contextmanager
def _watching(folder: Path) -> Iterator[Changes]:
    """Watch the folder and its current subfolders. Raises `UsageError`."""
    changes = Changes()
    with ExitStack() as stack:
        try:
            stack.enter_context(watched([folder, *_folders_in(folder)], changes))
        except OSError as error:
            raise UsageError(f"cannot watch {folder}: {error.strerror}", "Run it without --watch.") from error
        yield changes


def _folders_in(folder: Path) -> Iterable[Path]:
    return (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
