"""The paths of a run for which a recording has names."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from codex_multi_role.host.spelling import as_on_disk
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.playbook.normalization import PathNames
from codex_multi_role.run_folder import RunFolder


def places_of(definitions: Definitions, folder: RunFolder) -> PathNames:
    """The paths that differ on another machine or in another run."""
    run = folder.path.resolve()
    return PathNames({**_around(definitions.workspace), "run folder": run, "runs": run.parent})


def places_around(workspace: Path) -> PathNames:
    """The part of `places_of` that is known before a run exists."""
    return PathNames(_around(as_on_disk(workspace)))


def _around(workspace: Path) -> dict[str, Path]:
    places = {"workspace": workspace, "python": Path(sys.prefix), "python installation": Path(sys.base_prefix)}
    with suppress(RuntimeError):  # a user need not have one
        places["home"] = Path.home()
    return places
