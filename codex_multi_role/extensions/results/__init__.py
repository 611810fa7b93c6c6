"""What a run did to the workspace, derived from its folder at any time: states, patches, branches, lines.

The public names are loaded on first use, so that a command imports only the module that it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codex_multi_role.extensions.results.exporting import Exported, export
    from codex_multi_role.extensions.results.patches import Diff, diff

__all__ = ["Diff", "Exported", "diff", "export"]
_MODULES = {**dict.fromkeys(("Exported", "export"), "exporting"), **dict.fromkeys(("Diff", "diff"), "patches")}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: the type depends on the name
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
