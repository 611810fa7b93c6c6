"""A run once more: without a model, as a test of the team or of what was claimed, or with the turns that changed.

The public names are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codex_multi_role.extensions.replays.rerunning import rerun
    from codex_multi_role.extensions.replays.run_options import ReplayOptions

__all__ = ["ReplayOptions", "rerun"]
_MODULES = {"ReplayOptions": "run_options", "rerun": "rerunning"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: the type depends on the name
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
