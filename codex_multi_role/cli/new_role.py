"""``roles new``: write a commented role file and its catalog entry; the catalog keeps its comments."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from codex_multi_role.cli.new_definitions import checked, in_yaml, own_catalog, refuse_existing, write_if_valid
from codex_multi_role.errors import DefinitionError, UsageError

if TYPE_CHECKING:
    from codex_multi_role.catalog import RoleSpecCatalog

ROLE = """# The role {name}. The README has every key; `codex-multi-role roles show {name}` shows it as it is used.
# The lines that begin with "# " and a key are further keys, with a value to try: take the # away.
name: {name}
prompt_text: |
  Say here who this role is, what it is to do with what it is handed, and when it is done.

# What it is told that it may do; `allow_write` also decides whether its sandbox lets it write the workspace.
prompt_flags:
  allow_tools: true
  allow_read: true
  allow_write: false
  allow_file_suggestions: false

behaviors:
  apply_files: false          # true: the files that it hands in are written into the workspace, and pytest runs
  can_finish: false           # true: its status DONE ends the run
  timeout_policy: default     # planner: 300 s of silence and 1800 s a turn, instead of 120 s and 900 s

# model: gpt-5-codex
# reasoning_effort: high
# limits: {{turn_seconds: 600}}
# protect: [tests/**]
# optional: true
"""


def add_role(name: str, given: Path | None) -> tuple[Path, Path]:
    """Write ``<name>.yaml`` beside the catalog and add its entry; returns the role's file and the catalog.

    Raises `UsageError`, also for a name that is taken, and `StorageError`; then nothing is changed.
    """
    from codex_multi_role.catalog.role_spec import check_role_name
    from codex_multi_role.lifecycle.definitions import load_catalog  # here: `--help` should not load the catalog

    catalog = load_catalog(own_catalog(given))
    names = [role.name for role in catalog.roles]
    if (taken := {each.casefold(): each for each in names}.get(checked(name, check_role_name).casefold())) is not None:
        raise UsageError(f"nothing was written: {catalog.source} has a role {taken} already", "Take another name.")
    path = catalog.source.parent / f"{name}.yaml"
    refuse_existing(path)
    changed = with_entry(catalog.source.read_bytes().decode(), _entry(name, catalog), catalog.source)

    def check() -> None:
        with suppress(DefinitionError):  # the end of the roles was not where it seemed to be
            if [role.name for role in load_catalog(catalog.source).roles] == [*names, name]:
                return
        raise _manual_edit_error(catalog.source, _entry(name, catalog))

    write_if_valid({path: ROLE.format(name=in_yaml(name)).encode(), catalog.source: changed.encode()}, check)
    return path, catalog.source


def _entry(name: str, catalog: RoleSpecCatalog) -> list[str]:
    """Return the entry; it waits for the last role if any role has ``depends_on``, otherwise the order decides."""
    waits = (
        [f"  depends_on: [{in_yaml(catalog.roles[-1].name)}]"] if any(role.depends_on for role in catalog.roles) else []
    )
    return [f"- name: {in_yaml(name)}", f"  role_file: {name}.yaml", *waits]


def with_entry(text: str, entry: list[str], source: Path) -> str:
    """Insert an entry's lines after the last role of the catalog's ``text``; everything else stays as it is.

    Raises `DefinitionError` if the roles are not written one below the other. No library writes the YAML, because it
    would reformat all of it.
    """
    roles = _value_of(yaml.compose(text), "roles")
    if not isinstance(roles, yaml.SequenceNode) or roles.flow_style:
        raise _manual_edit_error(source, entry)
    lines = text.splitlines(keepends=True)
    at = _line_after(roles.value[-1])
    line_end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    if not lines[at - 1].endswith(("\r", "\n")):
        lines[at - 1] += line_end
    indent = " " * roles.start_mark.column
    return "".join([*lines[:at], *(f"{indent}{line}{line_end}" for line in entry), *lines[at:]])


def _manual_edit_error(source: Path, entry: list[str]) -> DefinitionError:
    what = ", ".join(line.lstrip("- ") for line in entry)
    return DefinitionError(
        f"{source}: roles: nothing was written, for the end of the roles is not plain to see",
        f"Write them one below the other, or add it by hand: {{{what}}}.",
    )


def _value_of(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _line_after(node: yaml.Node) -> int:
    """Return the line below the node's last character, not counting comments behind it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.line + (node.end_mark.column > 0))
