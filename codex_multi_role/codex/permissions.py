"""What roles, tests and sandboxed commands may write: the workspace, but never the folder with the runs.

Codex's mode ``workspace-write`` makes the whole working folder and the temporary folders writable. The runs are usually
inside one of them, so a role could change its own verdict. A permission profile can exclude folders. Source: the key
``permissions`` of Codex's configuration (beta), and ``thread/start.permissions``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from codex_multi_role.codex.codex_settings import as_settings, known_settings
from codex_multi_role.errors import UsageError
from codex_multi_role.host.programs import program_path
from codex_multi_role.host.user_cache import user_state

PROFILE = "codex_multi_role"
SETTINGS = "sandbox_workspace_write"
KEPT_FROM_WRITING = dict.fromkeys((".git", ".codex", ".agents"), "read")
"""What workspace-write protects in the working folder (measured)."""
PATTERN = frozenset("*?[]")
"""The characters that make a path a pattern in a permission profile (measured)."""
_OUTSIDE = 'INNER_PATH=$PATH PATH=$1; export INNER_PATH PATH; shift; exec "$@"'
_INSIDE = 'PATH=$INNER_PATH; unset INNER_PATH; export PATH; exec "$@"'
OWN_RULES = ("sandbox_mode", "default_permissions", "permissions")


@dataclass(frozen=True)
class WriteAccess:
    """Codex's settings ``sandbox_workspace_write``: additional writable folders, and network access."""

    writable_roots: tuple[str, ...] = ()
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False

    @classmethod
    def of(cls, settings: Iterable[str], home: Path | None) -> Self:
        """What `known_settings` make of it; Codex itself reports unknown and unreadable settings."""
        found = known_settings(tuple(settings), home).get(SETTINGS)
        known = found if isinstance(found, Mapping) else {}
        access = cls(**{each.name: known[each.name] for each in fields(cls) if each.name in known})
        state = user_state()  # with copies of workspaces, each of which is writable only while a role works in it
        roots = (root for root in access.writable_roots if not Path(root).resolve().is_relative_to(state))
        return replace(access, writable_roots=tuple(roots))


def profile(access: WriteAccess, read_only: Sequence[Path], workspace: Path | None = None) -> tuple[str, ...]:
    """Settings for a process whose threads may write as ``access`` allows, but not in ``read_only``.

    The working folder, ``workspace`` or a copy of it, may be inside one of those: the deeper rule applies.
    """
    temporary = {":tmpdir": access.exclude_tmpdir_env_var, ":slash_tmp": access.exclude_slash_tmp}
    in_workspace = [path.relative_to(workspace) for path in _folders_between(workspace, read_only)] if workspace else []
    elsewhere = (path for root in _other_roots(access) for path in _folders_between(root, read_only))
    filesystem: dict[str, Any] = {
        ":root": "read",
        ":workspace_roots": {
            ".": "write",
            **dict.fromkeys(map(str, in_workspace), "write"),
            **KEPT_FROM_WRITING,
        },
        **{name: "write" for name, excluded in temporary.items() if not excluded},
        **dict.fromkeys(access.writable_roots, "write"),
        **dict.fromkeys(map(str, elsewhere), "write"),
        **{str(path): "read" for path in read_only},
    }
    rules = {"filesystem": filesystem, "network": {"enabled": access.network_access}}
    return as_settings({f"permissions.{PROFILE}": rules, "default_permissions": PROFILE})


def _other_roots(access: WriteAccess) -> list[Path]:
    roots = list(access.writable_roots)
    if not access.exclude_slash_tmp:
        roots.append("/tmp")
    if not access.exclude_tmpdir_env_var and "TMPDIR" in os.environ:
        roots.append(os.environ["TMPDIR"])
    return [Path(root).resolve() for root in roots]


def _folders_between(root: Path, read_only: Sequence[Path]) -> list[Path]:
    """Folders between the writable ``root`` and the ``read_only`` paths below it.

    With its own rule each is a mount point: no command can move it aside and replace it (measured).
    """
    parents = {parent for path in read_only if path.is_relative_to(root) for parent in path.parents}
    below = (each for each in parents if each != root and each.is_relative_to(root))
    return sorted(each for each in below if not any(each.is_relative_to(path) for path in read_only))


def require_exact(paths: Iterable[Path]) -> None:
    """Raises `UsageError` for a path that Codex would read as a pattern: it rejects those and has no escape syntax."""
    for path in paths:
        if found := sorted(PATTERN & set(str(path))):
            raise UsageError(
                f"{path}: Codex's sandbox cannot protect a path with {' or '.join(found)} in it",
                "Rename the folder, or use another one.",
            )


def has_own_rules(settings: Iterable[str]) -> bool:
    """Whether the settings themselves define write access; Codex accepts only one way of doing so."""
    return any(setting.partition("=")[0].partition(".")[0] in OWN_RULES for setting in settings)


def sandboxed(
    codex: Path, argv: Sequence[str], writable: Path, read_only: Sequence[Path] = (), workspace: Path | None = None
) -> list[str]:
    """Wrap ``argv`` in ``codex sandbox``: only the working folder and ``writable`` can be written.

    ``read_only`` cannot be written even inside them, nor moved aside in ``workspace``. The temporary folders are not
    writable, so point TMPDIR into ``writable``. Source: ``codex sandbox --help``.

    Codex takes ``bwrap`` from PATH, except from the working folder (measured), which may be a copy of the workspace. So
    only ``argv`` gets the PATH of its environment.
    """
    access = WriteAccess((str(writable),), exclude_tmpdir_env_var=True, exclude_slash_tmp=True)
    flags = [part for setting in profile(access, read_only, workspace) for part in ("-c", setting)]
    outside = ["/bin/sh", "-c", _OUTSIDE, "sh", program_path(os.environ)]
    return [*outside, str(codex), "sandbox", *flags, "--", "/bin/sh", "-c", _INSIDE, "sh", *argv]
