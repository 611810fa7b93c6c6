"""Where the roles and flows lie that come with the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def packaged_roles() -> Path:
    """The shipped catalog's folder: ``codex_multi_role/_roles`` in a wheel, the checkout's ``roles/`` otherwise."""
    in_wheel = _PACKAGE / "_roles"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / "roles"
