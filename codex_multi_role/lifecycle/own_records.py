"""What a recorded run names that somebody must trust: options of `Use.TRUST`, and what its team may start.

It counts if this user says the same now, or if this machine wrote the record, and noted that in the user's state
folder. Nothing in a run folder can say so, because it would be copied with the folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.checks import find_check
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.user_cache import is_noted, note
from codex_multi_role.lifecycle.team_loading import load_team
from codex_multi_role.option import Option, Use
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import RELOADED
from codex_multi_role.run_options import HARMLESS, options_for
from codex_multi_role.workspace.repository import where_it_works

_COMMANDS = ("argv", "cwd", "environment", "pytest_cmd")
"""Options of checks that say which command runs, and how."""


def remember(record: Mapping[str, Any], run: RunFolder | None = None) -> None:
    """Note that this machine writes ``record``, of a ``run`` that has kept its team. A read-only home has no notes."""
    with suppress(OSError, StorageError):
        note("records", _what_counts(record, run))
        note("owned", where_it_works(record))


def is_own(record: Mapping[str, Any], run: RunFolder | None = None) -> bool:
    """Whether this machine wrote ``record`` as it is, and the copy of the team of its ``run``."""
    with suppress(OSError):
        return is_noted("records", _what_counts(record, run))
    return False


def _what_counts(record: Mapping[str, Any], run: RunFolder | None) -> list[object]:
    options = {name: record["options"][name] for name in of_trust(record["options"])}
    return [options, record.get("roles_source"), [*_team(run, record["catalog_file"])] if run else []]


def _team(run: RunFolder, catalog_file: str) -> Iterator[tuple[str, str]]:
    """The files that the run keeps with this catalog, and their digests."""
    own = Path(catalog_file).parts[0]
    for path in sorted(filter(Path.is_file, run.catalog_path.rglob("*"))):
        name = path.relative_to(run.catalog_path)
        if name.parts[0] == own or not (own.startswith(RELOADED) or name.parts[0].startswith(RELOADED)):
            yield str(name), hashlib.sha256(path.read_bytes()).hexdigest()


def of_trust(named: Mapping[str, Any], use: Use = Use.TRUST | Use.OUTSIDE) -> dict[str, Option]:
    """The options among those ``named`` that somebody must trust."""
    return {name: each for name, each in options_for(named).items() if name in named and use & each.use}


def unsaid(named: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[tuple[Option, Any]]:
    """Those, with what is ``named`` of them and not ``said``."""
    use = Use.TRUST if named.get("test_sandbox", True) else Use.TRUST | Use.OUTSIDE
    for name, option in of_trust(named, use).items():
        value, known = named[name], said.get(name, option.default)
        if option.kind is tuple:
            value = tuple(each for each in value if not re.match(HARMLESS, each) and each not in known)
        if value not in (option.default, known):
            yield option, value


def outside_sandbox(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, sandboxed: bool = True) -> Iterator[str]:
    """What a team could start outside Codex's sandbox; its tests and commands run in it if ``sandboxed``."""
    for role in catalog.roles:
        for name, server in role.mcp_servers.items():
            started = server.command and shlex.join([server.command, *server.args])
            yield f"role {role.name} has mcp_servers ({name}: {started or server.url})"
        given = {
            f"codex_config ({', '.join(role.codex_config)})": role.codex_config,
            "sandbox: danger-full-access": role.sandbox == "danger-full-access",
            "auto_approve": role.auto_approve.commands or role.auto_approve.file_changes,
        }
        yield from (f"role {role.name} has {name}" for name, has in given.items() if has)
    yield from (words for _, words in flows_outside(flows, sandboxed))


def flows_outside(flows: Mapping[str, FlowSpec], sandboxed: bool) -> Iterator[tuple[str, str]]:
    """What flows do outside the sandbox, as a key to compare it by and in words."""
    for flow in flows.values():
        if flow.workspace.setup and not sandboxed:
            yield flow.workspace.setup, f"workspace.setup runs without the sandbox: {flow.workspace.setup}"
        for step, _ in flow.all_steps:
            command = {name: step.with_[name] for name in _COMMANDS if name in step.with_}
            if step.with_.get("sandbox", True) is not True or (command and not sandboxed):
                key = json.dumps(command, sort_keys=True)
                yield key, f"step {step.id} runs without the sandbox: {key}"
            if step.check and find_check(step.check).settings:  # which may name other machines, and secrets for them
                yield step.check, f"step {step.id} uses the check {step.check}"


def require_said(
    whose: str, named: Mapping[str, Any], said: Mapping[str, Any], team: Iterable[str] = (), catalog: object = ""
) -> None:
    """Raise `UsageError` for each `unsaid` option, and for what the ``team`` of ``catalog`` may start."""
    options, rights = [*unsaid(named, said)], [*team]
    told = [f"{each.name} ({', '.join(value) if each.kind is tuple else value})" for each, value in options] + rights
    flags = [word for option, value in options for words in option.arguments(value) for word in words]
    if told:
        raise UsageError(
            f"{whose} says what counts only if you say it as well: {'; '.join(told)}",
            f"If you trust it, add `{shlex.join([*flags, *(['--roles', str(catalog)] if rights else [])])}`.",
        )


def require_trusted(
    run: RunFolder, record: Mapping[str, Any], named: Mapping[str, Any], given: Mapping[str, Any], catalog: Path
) -> None:
    """Raise `UsageError` for what only a record from elsewhere says: of the options ``named`` what is not given.

    ``catalog``: the team to work with, unless another is given.
    """
    if not is_own(record, run):
        team = () if "roles" in given else outside_sandbox(*load_team(named["flow"], catalog), named["test_sandbox"])
        require_said(f"run {run.run_id}, which this machine did not record,", named, given, team, catalog)
