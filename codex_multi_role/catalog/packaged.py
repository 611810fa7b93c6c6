"""Locates the roles and flows bundled with the package."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.run_options import LOCAL_ROLES

_PACKAGE = Path(__file__).resolve().parent.parent


def packaged_roles() -> Path:
    """The shipped catalog's folder: ``codex_multi_role/_roles`` in a wheel, the checkout's ``roles/`` otherwise."""
    in_wheel = _PACKAGE / "_roles"
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent / "roles"


def settings_file(name: str, folder: Path) -> Path | None:
    """The file ``name`` in ``folder``, the catalog's, otherwise the packaged one; None if neither exists.

    With the packaged catalog, a project's own file takes precedence and needs no catalog beside it.
    """
    places = [folder, packaged_roles()]
    if folder == packaged_roles():
        places.insert(0, LOCAL_ROLES)
    return next((place / name for place in places if (place / name).is_file()), None)
