"""Which turns a run may take over, and from which earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.errors import RunNotFound
from codex_multi_role.extensions.replays.reuse.observer import Reuse
from codex_multi_role.extensions.replays.reuse.role_inputs import RoleReader
from codex_multi_role.extensions.replays.run_options import EVERY_RUN
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.run_folder import RunFolder, list_runs
from codex_multi_role.steps import RunResources

if TYPE_CHECKING:
    from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierRun, EarlierTurns

MOST_RUNS = 200
"""So many of the latest runs are searched for turns."""


def observe_turns(definitions: Definitions, run: RunResources) -> Reuse:
    """The observer of the turns of a run, which takes over equal ones if the run reuses any."""
    folder, reuse = run.services.folder, definitions.options.added.get("reuse")
    reader = RoleReader(definitions, run.services.catalog_now, run.settings.protect)
    earlier = earlier_turns(partial(named_runs, reuse, folder)) if reuse else None
    return Reuse(folder, definitions.workspace, reader.read, earlier)


def named_runs(reuse: str, folder: RunFolder) -> Iterable[RunFolder]:
    """The run that ``reuse`` names or, for `EVERY_RUN`, the latest runs beside ``folder``, newest first."""
    if reuse != EVERY_RUN:
        return [RunFolder(folder.path.parent / reuse)]
    others = [each for each in list_runs(folder.path.parent) if each.run_id != folder.run_id]
    return reversed(others[-MOST_RUNS:])


def earlier_turns(folders: Callable[[], Iterable[RunFolder]]) -> EarlierTurns:
    """The turns of these runs, which are read when the first one is looked up."""
    from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierTurns  # here: most runs reuse nothing

    return EarlierTurns(lambda: filter(None, map(earlier_run, folders())))


def earlier_run(folder: RunFolder) -> EarlierRun | None:
    """The run; None if its record is missing or damaged: then none of its turns can be taken over."""
    from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierRun  # as in `earlier_turns`

    with suppress(RunNotFound, KeyError):
        return EarlierRun(folder, Path(folder.record()["workspace"]))
    return None
