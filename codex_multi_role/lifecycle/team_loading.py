"""A team as its files define it: the catalog of roles, a flow and the flows it calls, with their tools and checks.

A team is also checked as a whole: all its files, and all mistakes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from codex_multi_role.catalog import (
    FlowSpec,
    RoleSpecCatalog,
    StepSpec,
    asked_role_files,
    read_flows,
)
from codex_multi_role.catalog.flow_spec import step_place, steps_below
from codex_multi_role.catalog.flow_steps import check_steps
from codex_multi_role.catalog.source_files import LOCAL_ROLES
from codex_multi_role.checks import Check, find_check, no_time
from codex_multi_role.checks.contract import COULD_NOT_RUN, WrongOption, require_option_names, require_option_values
from codex_multi_role.checks.tools import find_tool, tool_names
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.read_checks import check_contracts, check_reads
from codex_multi_role.flow.references import AT_THE_END, check_flows, unsent_roles
from codex_multi_role.flow.routing import relies_on_done
from codex_multi_role.flow.step_fields import (
    KnownCheck,
    check_closed_schemas,
    check_keys,
    known_types,
    values_of_options,
)
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.shipped import FLOWS, list_definitions, packaged_roles
from codex_multi_role.reading.validation_words import how_to_quote, written_path
from codex_multi_role.reading.value_types import ANY, MAPPING, Fields, ValueType, fields_named, one_of, type_of_model
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.turn_folder import ANALYSIS_PATH
from codex_multi_role.steps.check_context import load_settings
from codex_multi_role.steps.protection import TOLD
from codex_multi_role.steps.turn_record import WEB_SEARCHES

ADDED = (ANALYSIS_PATH, TOLD, WEB_SEARCHES)
"""The fields that an answer may get from elsewhere."""


class _FlowsAndRoles(NamedTuple):
    flows: dict[str, FlowSpec]
    catalog: RoleSpecCatalog


class CheckedTeam(_FlowsAndRoles):
    """A flow and those that it calls, by name, and the catalog with all roles that they ask."""

    @cached_property
    def contracts(self) -> Contracts:
        """What the roles must answer; derived when it is first needed."""
        return Contracts(self.flows, next(iter(self.flows)), self.catalog.roles, ADDED)


def roles_folder(given: Path | None) -> Path:
    """The catalog's folder: ``--roles`` or its file's folder, ``./roles`` if it has a catalog, or the packaged one."""
    if given is not None:
        return given.parent if given.is_file() else given
    return LOCAL_ROLES if (LOCAL_ROLES / "catalog.yaml").is_file() else packaged_roles()


def load_team(flow: str, roles: Path | None) -> CheckedTeam:
    """As `load_flow_and_called`, with the catalog that ``roles`` names. Raises `UsageError`.

    Mistakes of a flow are found even if the catalog has some.
    """
    try:
        catalog = load_catalog(roles)
    except DefinitionError as error:
        try:
            check_without_roles(flow, roles_folder(roles))
        except DefinitionError as more:
            raise DefinitionError.together([error, more]) from error
        raise
    return load_flow_and_called(flow, catalog)


def check_without_roles(name: str, folder: Path) -> None:
    """Check a flow and those it calls, except for what depends on the roles. Raises `DefinitionError`."""
    for flow in read_flows(name, folder).values():
        check_steps(flow)


def load_catalog(given: Path | None) -> RoleSpecCatalog:
    """Load the catalog that ``--roles`` names, or that of `roles_folder`, with its tools. Raises `UsageError`."""
    return _with_tools(RoleSpecCatalog.load(given or roles_folder(None), tool_names))


def _with_tools(catalog: RoleSpecCatalog) -> RoleSpecCatalog:
    for name in {name for role in catalog.roles for name in role.tools}:
        find_tool(name)
    return catalog


def load_flow_and_called(name: str, catalog: RoleSpecCatalog) -> CheckedTeam:
    """Load a flow and the flows it calls from the catalog's folder, and look up their checks. Raises `UsageError`."""
    return checked_team(read_flows(name, catalog.source.parent), catalog)


def checked_team(flows: dict[str, FlowSpec], catalog: RoleSpecCatalog) -> CheckedTeam:
    """As `load_flow_and_called`, of flows that were read already."""
    if role_files := asked_role_files(flows, catalog):
        catalog = _with_tools(RoleSpecCatalog.load(catalog.source, tool_names, role_files))
    team, problems = CheckedTeam(flows, catalog), Problems()
    types = known_types(flows, catalog, known_checks(flows), ADDED)
    for name in (name for name, flow in flows.items() if is_recorded(flow)):
        types[name] = {key: known.names_only() for key, known in types[name].items()}
    with problems.collected():
        check_flows(flows, catalog, types)
        check_reads(flows)
    for name, flow in flows.items():
        _check_checks(flow, catalog, types[name], problems)
        if not is_recorded(flow):
            check_keys(flow, problems)
    _check_isolated_calls(flows, problems)
    if not any(map(is_recorded, flows.values())):
        check_closed_schemas(catalog, problems)
        problems.raise_found()
        check_contracts(team.contracts, flows, catalog)
    problems.raise_found()
    return team


def is_recorded(flow: FlowSpec) -> bool:
    """Whether the flow is a run's own copy, which was judged when the run started, and is kept as it is."""
    catalog = flow.source.absolute().parent.parent
    folders = RunFolder(catalog.parent), RunFolder(catalog.parent.parent)  # a later copy is in a folder of the first
    return any(catalog.is_relative_to(folder.catalog_path) and folder.record_path.is_file() for folder in folders)


def known_checks(flows: Mapping[str, FlowSpec]) -> dict[str, KnownCheck]:
    """By name, the checks of ``flows`` that exist."""
    known = {}
    for name in {step.check for flow in flows.values() for step in flow.steps if step.check is not None}:
        with suppress(UsageError):  # reported with its place by `_check_check`
            known[name] = _known(name, find_check(name))
    return known


def _known(name: str, check: Check) -> KnownCheck:
    declared, bad = type_of_model(check.result), check.result.bad
    status = declared.fields.get("status", ANY)
    only_passes_or_fails = status.values is not None and len(status.values) == 1
    return KnownCheck(
        _as_recorded(name, declared),
        (*bad, COULD_NOT_RUN),
        check.read_only and not check.what_is_bad and not only_passes_or_fails,
        check.read_only and check.max_seconds is no_time,
    )


def _as_recorded(name: str, result: ValueType) -> ValueType:
    """The result with the fields that its step adds to it, or has if the check could not run."""
    if result.is_open:
        return MAPPING
    added = (TOLD, "reason", *(["number"] if name == "tests" else []))
    status = result.fields.get("status", ANY) | one_of(COULD_NOT_RUN)
    return ValueType.of_fields({**fields_named(added), **result.fields, "status": status})


def _check_isolated_calls(flows: dict[str, FlowSpec], problems: Problems) -> None:
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            if step.call and step.isolate and any(each.isolate for each in steps_below(flows, step.call)):
                problems.add(
                    (step_place(flow, index) / "isolate").error(
                        f"the flow {step.call} has steps in copies of their own, which cannot be merged into a copy",
                        "Isolate either this step or those.",
                    )
                )


def _check_checks(flow: FlowSpec, catalog: RoleSpecCatalog, types: Fields, problems: Problems) -> None:
    for step, place in flow.all_steps:
        if step.check is not None:
            with problems.collected():
                _check_check(step, place, None if is_recorded(flow) else {**types, **AT_THE_END})
                load_settings(step.check, catalog.source.parent)


def _check_check(step: StepSpec, place: Place, types: Fields | None) -> None:
    """Raise `DefinitionError` unless the check exists and takes the step's options.

    ``types``: those of the names that templates use; without them, only the names of the options are checked.
    """
    name = step.check or ""
    try:
        options = find_check(name).options
    except UsageError as error:
        raise (place / "check").error(str(error), error.hint) from error
    if options is None:
        return
    try:
        require_option_names(options, step.with_)
        if types is not None:
            require_option_values(options, *values_of_options(step, types))
    except WrongOption as error:
        where = (place / "with").key(*written_path(tuple(error.path), step.with_))
        hint = how_to_quote(where, error.value) or error.hint
        raise where.error(f"check {name}: {error}", hint) from error


def changed_catalog(source: Path, catalog: RoleSpecCatalog) -> RoleSpecCatalog:
    """Reload the roles of ``catalog`` from the file ``source`` and the files beside it. Raises `DefinitionError`."""
    beside = tuple(source.parent / file.name for file in catalog.role_files)
    role_files = tuple(new if new.exists() else old for new, old in zip(beside, catalog.role_files, strict=True))
    return _with_tools(RoleSpecCatalog.load(source, tool_names, role_files))


def load_checked_team(given: Path | None) -> RoleSpecCatalog:
    """Load the catalog that ``--roles`` names. Raises one `DefinitionError` for all mistakes in the team's files."""
    problems = Problems()
    folder = roles_folder(given)
    catalog: RoleSpecCatalog | None = None
    with problems.collected():
        catalog = load_catalog(given)
    for name in own_flows(folder):
        with problems.collected():
            if catalog is None:
                check_without_roles(name, folder)
            else:
                load_flow_and_called(name, catalog)
    problems.collect(check_playbooks, folder)
    problems.raise_found()
    return catalog or load_catalog(given)


def own_flows(folder: Path) -> list[str]:
    """The names of the flows beside the catalog; the shipped ones, which may need systems, are nobody's own."""
    if folder.resolve() == packaged_roles().resolve():
        return []
    return [name for name, file in list_definitions(FLOWS, folder).items() if file.parent.parent == folder]


def unsent_in_own_flows(catalog: RoleSpecCatalog) -> list[tuple[str, str]]:
    """The roles of the catalog, each with a warning of `unsent_roles`, about the flows beside it that can be read."""
    folder, warnings = catalog.source.parent, dict[tuple[str, str], None]()
    for name in own_flows(folder):
        with suppress(UsageError):
            warnings |= dict.fromkeys(unsent_roles(read_flows(name, folder), catalog).items())
    return [*warnings]


def check_playbooks(folder: Path) -> None:
    """Load every playbook beside the catalog. Raises one `DefinitionError` for all mistakes."""
    from codex_multi_role.playbook import list_playbooks, load_playbook  # here: a run does without

    problems = Problems()
    for path in list_playbooks(folder).values():
        if path.parent.parent == folder:
            problems.collect(load_playbook, str(path))
    problems.raise_found()


def require_finish(flow: FlowSpec, catalog: RoleSpecCatalog) -> None:
    """Raise `DefinitionError` if only a role's DONE can end the flow with its goal, and no role may say it."""
    asked = {role for step in flow.steps for role in step.asked}
    roles = [role for role in catalog.roles if "*" in asked or role.name in asked]
    if relies_on_done(flow) and not any(role.behaviors.can_finish for role in roles):
        raise Place(catalog.source, ("roles",)).error(
            f"no role can finish: the flow {flow.name} reaches its goal only if a role says DONE",
            "Set behaviors: {can_finish: true} for the role that decides when the goal is reached.",
        )
