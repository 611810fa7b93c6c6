"""What is added to a run that belongs to another place, by the process there that works on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.worktrees import Trees

if TYPE_CHECKING:
    from codex_multi_role.engine.durable_run import Begin


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
