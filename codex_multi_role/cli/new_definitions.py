"""What ``roles new`` and ``flows new`` share: they change the user's own catalog only, and write only what is valid."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError, UsageError
from codex_multi_role.run_options import LOCAL_ROLES


def option_for(roles: Path) -> str:
    """Return `` --roles PATH`` to append to a command; nothing for the default folder."""
    return "" if roles == LOCAL_ROLES else f" --roles {shlex.quote(str(roles))}"


def own_catalog(given: Path | None) -> Path:
    """Return ``--roles``, or ``./roles`` if it has a catalog. Raises `UsageError`: the shipped one is never changed."""
    from codex_multi_role.catalog import packaged_roles
    from codex_multi_role.lifecycle.definitions import roles_folder  # here: `--help` should not load the catalog

    if given is None and roles_folder(None) == packaged_roles():
        raise UsageError("there is no roles/catalog.yaml here", "`codex-multi-role init` writes one to begin with.")
    return given or roles_folder(None)


def checked(name: str, check: Callable[[str], str]) -> str:
    """Return ``name``. Raises `UsageError` if ``check`` raises ``ValueError``."""
    try:
        return check(name)
    except ValueError as error:
        raise UsageError(str(error)) from error


def in_yaml(name: str) -> str:
    """Return ``name``, quoted if YAML would not read it as text (``no``, ``42``)."""
    import yaml  # as above

    return yaml.safe_dump([name]).removeprefix("- ").rstrip()


def refuse_existing(path: Path) -> None:
    """Raise `UsageError` if the file exists."""
    if path.exists() or path.is_symlink():
        raise UsageError(f"nothing was written: there is a {path} already", "Take another name, or edit that file.")


def write_if_valid(contents: Mapping[Path, bytes], check: Callable[[], None]) -> None:
    """Write the files; if ``check`` then raises, restore the old ones. Raises what it raises, `StorageError`."""
    from codex_multi_role.host.atomic import make_folder, write_bytes  # as above

    before = {path: path.read_bytes() if path.exists() else None for path in contents}
    try:
        for path, content in contents.items():
            make_folder(path.parent)
            write_bytes(path, content)
        check()
    except CodexMultiRoleError:
        for path, old in before.items():
            if old is None:
                path.unlink(missing_ok=True)
            else:
                write_bytes(path, old)
        raise
