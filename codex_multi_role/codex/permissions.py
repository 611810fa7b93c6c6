"""What a role that may write, and the tests, may write: the workspace, but never the folder with the runs.

Codex's mode ``workspace-write`` makes the whole working folder and the temporary folders writable, and the runs usually
lie in one of them: a role could change its own verdict. A permission profile can leave folders out. Source: the key
``permissions`` of Codex's configuration (beta), and ``thread/start.permissions``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from codex_multi_role.codex.codex_settings import as_settings
from codex_multi_role.errors import UsageError

PROFILE = "codex_multi_role"
SETTINGS = "sandbox_workspace_write"
KEPT_FROM_WRITING = (".git", ".codex", ".agents")
"""What workspace-write keeps from being written in the working folder (measured)."""
PATTERN = frozenset("*?[]")
"""What makes a path a pattern in a permission profile (measured)."""
OWN_RULES = ("sandbox_mode", "default_permissions", "permissions")


@dataclass(frozen=True)
class WriteAccess:
    """Codex's settings ``sandbox_workspace_write``: what else may be written, and whether there is a network."""

    writable_roots: tuple[str, ...] = ()
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False

    @classmethod
    def of(cls, settings: Iterable[str], home: Path | None) -> Self:
        """What ``config.toml`` of the Codex ``home`` says, then the ``-c`` settings in their order.

        What is no such setting, or none that can be read, is Codex's to complain of.
        """
        found = _table_of(home) if home is not None else {}
        for setting in settings:
            key, _, value = setting.partition("=")
            if key == SETTINGS:
                found |= _toml(value) if isinstance(_toml(value), dict) else {}
            elif key.startswith(f"{SETTINGS}."):
                found[key.removeprefix(f"{SETTINGS}.")] = _toml(value)
        known = {each.name: found[each.name] for each in fields(cls) if each.name in found}
        access = cls(**known)
        return replace(access, writable_roots=tuple(access.writable_roots))


def profile(access: WriteAccess, read_only: Sequence[Path], workspace: Path | None = None) -> tuple[str, ...]:
    """Settings of a process whose threads may write as ``access`` says, but nothing in ``read_only``.

    The working folder, ``workspace`` or a copy of it, may still be inside one of those: the deeper rule counts.
    """
    temporary = {":tmpdir": access.exclude_tmpdir_env_var, ":slash_tmp": access.exclude_slash_tmp}
    in_workspace = [path.relative_to(workspace) for path in _on_the_way(workspace, read_only)] if workspace else []
    elsewhere = (path for root in _other_roots(access) for path in _on_the_way(root, read_only))
    filesystem: dict[str, Any] = {
        ":root": "read",
        ":workspace_roots": {
            ".": "write",
            **dict.fromkeys(map(str, in_workspace), "write"),
            **dict.fromkeys(KEPT_FROM_WRITING, "read"),
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


def _on_the_way(root: Path, read_only: Sequence[Path]) -> list[Path]:
    """The folders between ``root``, which may be written, and what is ``read_only`` below it.

    With a rule of its own each is a mount point: no command can move it aside and put another in its place (measured).
    """
    parents = {parent for path in read_only if path.is_relative_to(root) for parent in path.parents}
    below = (each for each in parents if each != root and each.is_relative_to(root))
    return sorted(each for each in below if not any(each.is_relative_to(path) for path in read_only))


def require_exact(paths: Iterable[Path]) -> None:
    """Raises `UsageError` for a path that Codex would take for a pattern: it refuses those, and knows no escape."""
    for path in paths:
        if found := sorted(PATTERN & set(str(path))):
            raise UsageError(
                f"{path}: Codex's sandbox cannot protect a path with {' or '.join(found)} in it",
                "Rename the folder, or work from another one.",
            )


def has_own_rules(settings: Iterable[str]) -> bool:
    """Whether the settings say by themselves what may be written; Codex takes one way of saying it only."""
    return any(setting.partition("=")[0].partition(".")[0] in OWN_RULES for setting in settings)


def _table_of(home: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads((home / "config.toml").read_text(encoding="utf-8")).get(SETTINGS, {})
    except (OSError, ValueError):
        return {}
    return dict(table) if isinstance(table, Mapping) else {}


def _toml(value: str) -> Any:  # noqa: ANN401 - whatever TOML holds
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
