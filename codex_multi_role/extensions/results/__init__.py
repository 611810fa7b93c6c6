"""What a run did to the workspace, derived from its folder at any time: states, patches, branches, lines, trials.

The public names are loaded on first use, so that a command imports only the module that it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codex_multi_role.extensions.results.exporting import Exported, export
    from codex_multi_role.extensions.results.patches import Diff, diff
    from codex_multi_role.extensions.results.trials import BisectedRun, Trial, bisect
    from codex_multi_role.extensions.results.workspace_states import Change

__all__ = ["BisectedRun", "Change", "Diff", "Exported", "Trial", "bisect", "diff", "export"]
_MODULES = {
    **dict.fromkeys(("Exported", "export"), "exporting"),
    **dict.fromkeys(("Diff", "diff"), "patches"),
    **dict.fromkeys(("BisectedRun", "Trial", "bisect"), "trials"),
    "Change": "workspace_states",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: the type depends on the name
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
