"""Where a run is recorded: its journal, in its folder or where an option of an extension says, and what a worker adds.

An extension registers its `Journals` in the group ``codex_multi_role.journals``, under the option, whose value they are
made with. They are looked up only for a run with options of extensions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunOptions
from codex_multi_role.workspace.worktrees import Trees

if TYPE_CHECKING:
    from codex_multi_role.engine.durable_run import Begin
    from codex_multi_role.engine.journal_slots import Past


class Journals(Protocol):
    """The journals of runs in one place. Every method raises `StorageError`."""

    def open(
        self, run: RunFolder, warn: Callable[[str], None], is_stopping: Callable[[], bool], /
    ) -> AbstractContextManager[Begin]:
        """Open the run's journal for the duration of the block. Raises `UsageError` if it can never be used.

        ``warn`` gets a line about each outage; ``is_stopping``: whether the run is to stop, and a wait for the place of
        the journal with it.
        """

    def steps(self, run: RunFolder) -> Past:
        """What the run has recorded; empty if no session has reached the journal."""

    def fork(self, parent: RunFolder, fork: RunFolder, place: int) -> Past:
        """Give ``fork`` what ``parent`` recorded before ``place``; returns those steps by position."""

    def forget(self, run: RunFolder) -> None:
        """Delete what was recorded of the run outside of its folder."""


JOURNALS: Registry[Callable[[Any], Journals]] = Registry("journal", "codex_multi_role.journals", {})


def is_elsewhere(options: RunOptions) -> bool:
    """Whether a run with these options has its journal outside of its folder."""
    return any(name in JOURNALS.names() for name in options.added)


def journals_for(options: RunOptions) -> Journals:
    """Where a run with these options has its journal. Raises `UsageError` if what is needed for it is missing."""
    for name in options.added:
        if name in JOURNALS.names():
            return JOURNALS.find(name)(options.added[name])
    from codex_multi_role.engine.journal_file import JournalFiles  # lazy: the engine is slow to import

    return JournalFiles()


@dataclass(frozen=True)
class Placement:
    """Where a run is recorded besides its own folder, if a worker's process works on it.

    ``journal`` opens another journal than the options name. ``save(take_trees)`` saves the run outside of this machine
    before a step is recorded; ``take_trees`` snapshots the workspace. Once ``draining`` is set, the work in progress is
    finished and recorded, and the run ends as interrupted. ``begin`` gets the folder of a new run before anything is
    done. ``off_limits``: what no role and no test may write.
    """

    journal: Callable[[], AbstractContextManager[Begin]] | None = None
    save: Callable[[Callable[[], Trees]], object] = lambda _: None
    begin: Callable[[RunFolder], None] = lambda _: None
    draining: Event = field(default_factory=Event)
    off_limits: tuple[Path, ...] = ()
