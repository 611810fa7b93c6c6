"""Which turns a run may take over, and from which earlier run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.errors import RunNotFound
from codex_multi_role.extensions.replays.reuse.observer import Reuse
from codex_multi_role.extensions.replays.reuse.role_inputs import RoleReader
from codex_multi_role.extensions.replays.run_options import RERUN
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.steps import RunResources

if TYPE_CHECKING:
    from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierRun


def observe_turns(definitions: Definitions, run: RunResources) -> Reuse:
    """The observer of the turns of a run, which takes over equal ones of the run that it repeats, if any."""
    folder = run.services.folder
    reader = RoleReader(definitions, run.services.catalog_now, run.settings.protect)
    origin = folder.record().get("forked_from") or {}
    earlier = earlier_run(RunFolder(folder.path.parent / origin["run_id"])) if origin.get(RERUN) else None
    return Reuse(folder, definitions.workspace, reader.read, earlier)


def earlier_run(folder: RunFolder) -> EarlierRun | None:
    """The run; None if its record is missing or damaged: then none of its turns can be taken over."""
    from codex_multi_role.extensions.replays.reuse.earlier_turns import EarlierRun  # here: most runs repeat none

    with suppress(RunNotFound, KeyError):
        return EarlierRun(folder, Path(folder.record()["workspace"]))
    return None
