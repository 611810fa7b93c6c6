"""Which extra of this package brings a module that is not installed.

Imported only when one is missing: reading what is installed takes milliseconds.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from codex_multi_role.errors import DISTRIBUTION, INSTALL, UsageError, how_to_add


def missing_extra(error: BaseException, who: str) -> UsageError | None:
    """What to report if ``who`` raised ``error`` because an extra is not installed; None for any other error."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    module = (name or "").partition(".")[0]
    extra = _extra_with(module) if module else None
    if extra is None:
        return None
    return UsageError(f"{who} needs {module}, which is not installed", f"{INSTALL}{how_to_add(extra)}")


def _extra_with(module: str) -> str | None:
    """The smallest extra with a package that has the name of ``module``, or one like ``opentelemetry-sdk``."""
    try:
        own = metadata(DISTRIBUTION)
    except PackageNotFoundError:  # imported from a folder
        return None
    needed = [*map(Requirement, own.get_all("Requires-Dist", ()))]
    extras = {
        extra: [f"{canonicalize_name(each.name)}-" for each in needed if _holds(each, extra)]
        for extra in own.get_all("Provides-Extra", ())
    }
    start = f"{canonicalize_name(module)}-"
    found = [extra for extra, names in extras.items() if any(name.startswith(start) for name in names)]
    return min(found, key=lambda extra: len(extras[extra]), default=None)


def _holds(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is not None and requirement.marker.evaluate({"extra": extra})
