"""Where the roles and flows lie that come with the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def packaged_roles() -> Path:
    """The shipped catalog's folder: ``codex_multi_role/_roles`` in a wheel, the checkout's ``roles/`` otherwise."""
    in_wheel = _PACKAGE / "_roles"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / "roles"


def settings_file(name: str, folder: Path) -> Path | None:
    """The file of that name in ``folder``, where the catalog lies, or else the packaged one; None where neither is."""
    return next((path for path in (folder / name, packaged_roles() / name) if path.is_file()), None)
