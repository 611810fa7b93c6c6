"""The paths of a run that stand in a recording under a name."""

from __future__ import annotations

import sys
from pathlib import Path

from codex_multi_role.definitions import Definitions
from codex_multi_role.playbook.varying import Places
from codex_multi_role.run_folder import RunFolder


def places_of(definitions: Definitions, folder: RunFolder) -> Places:
    """What is found here and somewhere else on another machine, or in another run."""
    run = folder.path.resolve()
    return Places(
        {
            "workspace": definitions.workspace,
            "run folder": run,
            "runs": run.parent,
            "python": Path(sys.prefix),
            "python installation": Path(sys.base_prefix),
            "home": Path.home(),
        }
    )
