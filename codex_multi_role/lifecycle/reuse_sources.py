"""The earlier runs whose turns a run may take over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from codex_multi_role.errors import RunNotFound
from codex_multi_role.run_folder import RunFolder, list_runs
from codex_multi_role.run_options import EVERY_RUN

if TYPE_CHECKING:
    from codex_multi_role.steps.earlier_turns import EarlierRun, EarlierTurns


MOST_RUNS = 200
"""So many of the latest runs are searched for turns."""


def named_runs(reuse: str, folder: RunFolder) -> Iterable[RunFolder]:
    """The run that ``reuse`` names or, for `EVERY_RUN`, the latest runs beside ``folder``, newest first."""
    if reuse != EVERY_RUN:
        return [RunFolder(folder.path.parent / reuse)]
    others = [each for each in list_runs(folder.path.parent) if each.run_id != folder.run_id]
    return reversed(others[-MOST_RUNS:])


def earlier_turns(folders: Callable[[], Iterable[RunFolder]]) -> EarlierTurns:
    """The turns of these runs, which are read when the first one is looked up."""
    from codex_multi_role.steps.earlier_turns import EarlierTurns  # lazy: most runs reuse nothing

    return EarlierTurns(lambda: filter(None, map(earlier_run, folders())))


def earlier_run(folder: RunFolder) -> EarlierRun | None:
    """The run; None if its record is missing or damaged: then none of its turns can be taken over."""
    from codex_multi_role.steps.earlier_turns import EarlierRun

    with suppress(RunNotFound, KeyError):
        return EarlierRun(folder, Path(folder.record()["workspace"]))
    return None
