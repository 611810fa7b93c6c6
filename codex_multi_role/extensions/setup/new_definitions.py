"""``roles new`` and ``flows new``: they change the user's own catalog only, and write only what is valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import click
import yaml

from codex_multi_role.catalog import RoleSpecCatalog, list_flows
from codex_multi_role.catalog.role_spec import check_name
from codex_multi_role.cli.options import ROLES, command
from codex_multi_role.cli.output import say
from codex_multi_role.cli.roles import option_for
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError, UsageError
from codex_multi_role.extensions.setup.json_schemas import editor_comment, schema_files
from codex_multi_role.host.atomic import make_folder, write_bytes
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called, roles_folder
from codex_multi_role.reading.shipped import definition_folders, packaged_roles

ROLE = """# The role {name}. `codex-multi-role roles show {name}` prints it with all defaults.
# Commented keys are optional, with an example value: remove the # to use one.
name: {name}
prompt_text: |
  Describe who this role is, what it does with its input, and when it is done.

# What the prompt allows the role to do. `allow_write` also makes the workspace writable in its sandbox.
prompt_flags:
  allow_tools: true
  allow_read: true
  allow_write: false
  allow_file_suggestions: false

behaviors:
  apply_files: false          # true: write the files that it submits into the workspace, then run pytest
  can_finish: false           # true: its status DONE ends the run
  timeout_policy: default     # planner: 300 s of silence and 1800 s per turn instead of 120 s and 900 s

# model: gpt-5-codex
# reasoning_effort: high
# limits: {{turn_seconds: 600}}
# protect: [tests/**]
# optional: true
"""
FLOW = """# The flow {name}. `codex-multi-role flows graph {name} --ascii` draws it.
# `codex-multi-role flows validate {name}` checks it and prints its worst case.
description: {role} works until the tests pass.

# Inputs of a run, for example   --input most=5
inputs:
  most: {{type: integer, default: 3, minimum: 1, description: maximum number of attempts}}

# Steps run in order unless `next` says otherwise.
steps:
  - id: work
    ask: {asked}                  # a turn of this role; "*" asks every role of the catalog

  - id: measure
    check: tests                 # runs pytest
    next:                        # the first entry whose `when` is true; ends have exit code 0 unless `exit: 1`
      - {{when: "steps.measure.verdict in ['passed', 'no tests']", end: done}}
      - {{when: "steps.work.visits >= inputs.most", end: tests_failed, exit: 1}}
      - {{to: work}}
"""


@command(ROLES, name="new")
@click.argument("name", metavar="NAME")
def new_roles(name: str, roles: Path | None) -> None:
    """Write a commented file for the role NAME next to your catalog, and add it to the catalog as the last role.

    Nothing else in the catalog changes. The shipped catalog is never changed.
    """
    path, catalog = add_role(name, roles)
    say(f"wrote {path} and added it to {catalog}")
    if any((folder / path.name).is_file() for folder in definition_folders()):
        say(f"note: shipped flows that ask {name} now ask this role")
    say(f"next: edit {path}, then run `codex-multi-role roles validate{option_for(roles or path.parent)}`")


@command(ROLES, name="new")
@click.argument("name", metavar="NAME")
def new_flows(name: str, roles: Path | None) -> None:
    """Write a small commented flow to flows/NAME.yaml next to your catalog: a role works until the tests pass."""
    path = add_flow(name, roles)
    say(f"wrote {path}")
    where = option_for(roles or path.parent.parent)
    tried = f'codex-multi-role --goal "Try it out" --flow {name}{where} --dry-run'
    say(f"next: edit it, then run `codex-multi-role flows validate {name}{where}` and `{tried}`")


def add_role(name: str, given: Path | None) -> tuple[Path, Path]:
    """Write ``<name>.yaml`` beside the catalog and add its entry; returns the role's file and the catalog.

    Raises `UsageError`, also for a name that is taken, and `StorageError`; then nothing is changed.
    """
    catalog = load_catalog(_own_catalog(given))
    names = [role.name for role in catalog.roles]
    if (taken := {each.casefold(): each for each in names}.get(_folded(name))) is not None:
        raise UsageError(f"nothing was written: {catalog.source} already has a role {taken}", "Choose another name.")
    path = catalog.source.parent / f"{name}.yaml"
    _refuse_existing(path)
    changed = with_entry(catalog.source.read_bytes().decode(), _entry(name, catalog), catalog.source)

    def check() -> None:
        with suppress(DefinitionError):  # the end of the roles was not where it seemed to be
            if [role.name for role in load_catalog(catalog.source).roles] == [*names, name]:
                return
        raise _manual_edit_error(catalog.source, _entry(name, catalog))

    content = editor_comment(path, path.parent, "role") + ROLE.format(name=_in_yaml(name))
    schemas = schema_files(path.parent, ["role"])
    _write_if_valid({path: content.encode(), catalog.source: changed.encode(), **schemas}, check)
    return path, catalog.source


def _entry(name: str, catalog: RoleSpecCatalog) -> list[str]:
    """Return the entry; it waits for the last role if any role has ``depends_on``, otherwise the order decides."""
    ordered = any(role.depends_on for role in catalog.roles)
    waits = [f"  depends_on: [{_in_yaml(catalog.roles[-1].name)}]"] if ordered else []
    return [f"- name: {_in_yaml(name)}", f"  role_file: {name}.yaml", *waits]


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
        f"{source}: roles: nothing was written because the end of the roles cannot be found",
        f"Write each role on its own line, or add the entry by hand: {{{what}}}.",
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


def add_flow(name: str, given: Path | None) -> Path:
    """Write ``flows/<name>.yaml`` beside the catalog; returns its path.

    Raises `UsageError`, also for a name that is taken, and `StorageError`; then nothing is changed.
    """
    catalog = load_catalog(_own_catalog(given))
    folder = catalog.source.parent
    if known := [each for each in list_flows(folder) if each.name.casefold() == _folded(name)]:
        message = f"nothing was written: flow {known[0].name} already exists ({known[0].source})"
        raise UsageError(message, "Choose another name.")
    path = folder / "flows" / f"{name}.yaml"
    _refuse_existing(path)
    role = next((role for role in catalog.roles if role.may_change_workspace), catalog.roles[0])
    content = editor_comment(path, folder, "flow") + FLOW.format(name=name, role=role.name, asked=_in_yaml(role.name))
    contents = {path: content.encode(), **schema_files(folder, ["flow"])}
    _write_if_valid(contents, lambda: load_flow_and_called(name, catalog))
    return path


def _own_catalog(given: Path | None) -> Path:
    """Return ``--roles``, or ``./roles`` if it has a catalog. Raises `UsageError`: the shipped one is never changed."""
    if given is None and roles_folder(None) == packaged_roles():
        raise UsageError("no roles/catalog.yaml in the current folder", "Create one with `codex-multi-role init`.")
    return given or roles_folder(None)


def _folded(name: str) -> str:
    """Return the name in lower case. Raises `UsageError` if it cannot be one."""
    try:
        return check_name(name).casefold()
    except ValueError as error:
        raise UsageError(str(error)) from error


def _in_yaml(name: str) -> str:
    """Return ``name``, quoted if YAML would not read it as text (``no``, ``42``)."""
    return yaml.safe_dump([name]).removeprefix("- ").rstrip()


def _refuse_existing(path: Path) -> None:
    """Raise `UsageError` if the file exists."""
    if path.exists() or path.is_symlink():
        raise UsageError(f"nothing was written: {path} already exists", "Choose another name, or edit that file.")


def _write_if_valid(contents: Mapping[Path, bytes], check: Callable[[], object]) -> None:
    """Write the files; if ``check`` then raises, restore the old ones. Raises what it raises, `StorageError`."""
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
