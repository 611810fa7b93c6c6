"""A team of roles: the catalog file, the files it refers to, and who waits for whom.

``main.yaml``, the settings file of the original format, is refused with the replacement of each of its keys.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from codex_multi_role.catalog.definition import WHOLE_NUMBER, Definition, Items, Named, Nested, optional
from codex_multi_role.catalog.prompts import GeneralPrompts, completed, missing_parts
from codex_multi_role.catalog.role_entries import RoleEntry, RoleSettings, RoleSource, read_role_file
from codex_multi_role.catalog.role_spec import TIMEOUT_POLICIES, WITHOUT_EFFECT, RoleSpec
from codex_multi_role.catalog.skills import Skill
from codex_multi_role.catalog.source_files import SourceFiles
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.nearest import did_you_mean, no_such
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.registry import hint, no_such_part
from codex_multi_role.reading.yaml_source import load_yaml, validate

_COUNTERPARTS = {
    "OPENAI_API_KEY": "`codex-multi-role codex login --with-api-key`",
    "GOAL": "--goal {value}",
    "CYCLES": "--cycles {value}",
    "REPAIR_ATTEMPTS": "--repair-attempts {value}",
    "RUN_TESTS": "--run-tests or --no-run-tests",
    "PYTEST_CMD": "--pytest-cmd {value}",
    "ROLE_CONFIG_PATH": "--roles {value}",
    "DEFAULT_MODEL": "--model {value}",
    "PLANNER_TIMEOUT_S": "limits: {{idle_seconds: {value}}} of the roles with timeout_policy: planner",
    "ROLE_TIMEOUT_S": "defaults: {{limits: {{idle_seconds: {value}}}}} in the catalog",
    "HARD_TIMEOUT_S": "defaults: {{limits: {{turn_seconds: {value}}}}} in the catalog",
    "CODEX_ALLOW_COMMANDS": "defaults: {{prompt_flags: {{allow_tools: true}}}} in the catalog",
    "CODEX_AUTO_APPROVE_COMMANDS": "defaults: {{auto_approve: {{commands: true}}}} in the catalog",
    "CODEX_AUTO_APPROVE_FILE_CHANGES": "defaults: {{auto_approve: {{file_changes: true}}}} in the catalog",
}
_SWITCHES = {"0", "1", "true", "false", "yes", "no", "on", "off"}
_OFF = {"0", "false", "no", "off", ""}


def refuse_settings(data: object, source: Path) -> None:
    """Raise `DefinitionError` if ``data`` has these settings instead of a catalog."""
    if not isinstance(data, Mapping) or "roles" in data or not data.keys() & _COUNTERPARTS.keys():
        return
    catalog = source.parent / Path(str(data.get("ROLE_CONFIG_PATH") or "developer_config.yaml")).name
    known = {**data, "ROLE_CONFIG_PATH": catalog}
    lines = [f"\n  {key}: {_counterpart(key, known[key])}" for key in data]
    raise DefinitionError(
        f"{source}:1:1: these are settings, not a catalog of roles. Each key here, and what replaces it:"
        + "".join(lines),
        f"Name the catalog itself, --roles {shlex.quote(str(catalog))}. Options may also be in codex-multi-role.yaml.",
    )


def _counterpart(key: str, value: object) -> str:
    text = str(int(value)) if isinstance(value, bool) else "" if value is None else str(value)
    if key == "RUN_TESTS" and text.casefold() in _SWITCHES:
        return "--no-run-tests" if text.casefold() in _OFF else "--run-tests"
    if key not in _COUNTERPARTS:
        return "no counterpart"
    if key == "HARD_TIMEOUT_S" and text in _OFF:
        return "nothing; every turn has a limit, limits.turn_seconds"
    switched_off = "true" in _COUNTERPARTS[key] and text.casefold() in _OFF
    shown = _COUNTERPARTS[key].format(value=shlex.quote(text) if text else "VALUE")
    return shown.replace("true", "false") if switched_off else shown


CATALOG_FILES = ("catalog.yaml", "catalog.yml")
MAX_SHOWN_FILES = 5


class CatalogFile(Definition):
    """The catalog file as written."""

    version: Annotated[Literal[1], WHOLE_NUMBER] = Field(description="The version of the format.")
    defaults: Nested[RoleSettings] = optional(
        RoleSettings(), "Keys for every role; a role's own keys override them, key by key."
    )
    general_prompts: Nested[GeneralPrompts] = optional(GeneralPrompts(), "The fixed parts of every prompt.")
    schema_hints: Named[str, str | None] = optional(
        {}, "Texts that show the form of an answer, by name; `default` for roles without an entry."
    )
    roles: Items[RoleEntry] = Field(
        min_length=1, description="The roles, in the order of their work unless one has `depends_on`."
    )


@dataclass(frozen=True)
class RoleSpecCatalog:
    """The roles in the catalog's order. ``source`` is the catalog file, ``files`` are all files that it was read from.

    ``skills``: those that roles name, by name. ``notes``: what is valid, but may surprise its author. ``role_files``
    are those of roles that a flow asks but the catalog does not list; see `asked_roles`.
    """

    source: Path
    roles: tuple[RoleSpec, ...]
    general_prompts: GeneralPrompts
    files: tuple[Path, ...]
    role_files: tuple[Path, ...] = ()
    skills: Mapping[str, Skill] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def load(
        cls, path: Path, tool_names: Callable[[], Collection[str]] = tuple, role_files: tuple[Path, ...] = ()
    ) -> RoleSpecCatalog:
        """Read a catalog file, or the ``catalog.yaml`` (or ``.yml``) of a folder, and also ``role_files``.

        ``tool_names``: the available tools, requested only if a role has some. Raises one ``DefinitionError`` for all
        mistakes in it and in the files it refers to.
        """
        source = _catalog_file(path)
        files = SourceFiles(source)
        written = _read_catalog(source, files)
        entries = (*written.roles, *(RoleEntry(role_file=str(file.resolve())) for file in role_files))
        roles = build_role_specs(written.model_copy(update={"roles": entries}), files, tool_names)
        own = tuple(path for path in files.paths if path not in {file.resolve() for file in role_files})
        return cls(
            source, roles, completed(written.general_prompts), own, role_files, files.skills, _notes(written, roles)
        )

    def role(self, name: str) -> RoleSpec:
        """The role with that name. Raises ``UsageError`` with the nearest name."""
        for role in self.roles:
            if role.name == name:
                return role
        message, hint = no_such("role", name, (role.name for role in self.roles))
        raise UsageError(f"{self.source}: {message}", hint)

    def role_of(self, instance: str) -> str:
        """The role whose process ``instance`` is: the instance itself, or ``planner`` for ``planner.2``."""
        return instance if any(role.name == instance for role in self.roles) else instance.rpartition(".")[0]

    def dependencies(self) -> dict[str, tuple[str, ...]]:
        """The roles that each role waits for, in the catalog's order.

        If no role declares ``depends_on``, the catalog's order is the chain: each role waits for the one before it. If
        any role declares it, the declarations are the whole graph, and roles without are its roots.
        """
        if any(role.depends_on for role in self.roles):
            return {role.name: role.depends_on for role in self.roles}
        names = [role.name for role in self.roles]
        return {name: tuple(names[index - 1 : index]) if index else () for index, name in enumerate(names)}

    def in_order(self) -> list[str]:
        """All roles, each after those that it waits for."""
        return list(TopologicalSorter(self.dependencies()).static_order())

    def not_waited_for(self, handoffs: Mapping[str, Json]) -> dict[str, Json]:
        """The handoffs of the roles for which no other one waits: what the next round starts from."""
        waited_for = {each for needs in self.dependencies().values() for each in needs}
        return {role.name: handoffs[role.name] for role in self.roles if role.name in handoffs.keys() - waited_for}


def build_role_specs(
    written: CatalogFile, files: SourceFiles, tool_names: Callable[[], Collection[str]]
) -> tuple[RoleSpec, ...]:
    """Build the roles of a catalog file. Raises one ``DefinitionError`` for all mistakes."""
    hints = {name: text for name, text in written.schema_hints.items() if text is not None}
    problems = Problems()
    sources, roles = [], []
    for index, entry in enumerate(written.roles):
        with problems.collected():
            sources.append(RoleSource.read(index, entry, files))
    for source in sources:
        with problems.collected():
            roles.append(source.spec(written.defaults, hints, files))
    problems.raise_found()
    for check in (_check_names, _check_dependencies, partial(_check_tools, tool_names=tool_names)):
        problems.collect(check, sources, roles)
    problems.raise_found()
    return tuple(roles)


def _read_catalog(source: Path, files: SourceFiles) -> CatalogFile:
    """The catalog file. If it has mistakes, those of its roles' own files are reported with them."""
    data = load_yaml(source)
    refuse_settings(data, source)
    try:
        return validate(CatalogFile, data, source)
    except DefinitionError as error:
        raise DefinitionError.together([error, *_mistakes_in_role_files(data, files)]) from error


def _mistakes_in_role_files(data: object, files: SourceFiles) -> Iterator[DefinitionError]:
    entries = data.get("roles") if isinstance(data, Mapping) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, Mapping) and isinstance(reference := entry.get("role_file"), str):
            try:
                read_role_file(reference, Place(files.catalog, ("roles", index, "role_file")), files)
            except DefinitionError as error:
                yield error


def _catalog_file(path: Path) -> Path:
    try:
        if not path.is_dir():
            return path
        for candidate in (path / name for name in CATALOG_FILES):
            if candidate.exists():
                return candidate
    except OSError as error:
        raise DefinitionError(f"{path}: cannot be read: {error.strerror}") from error
    raise DefinitionError(f"{path}: holds no catalog.yaml", _other_catalogs(path))


def _notes(written: CatalogFile, roles: Iterable[RoleSpec]) -> tuple[str, ...]:
    notes = []
    missing = missing_parts(written.general_prompts)
    if "general_prompts" in written.model_fields_set and missing:
        notes.append(f"general_prompts: the shipped English texts are used for {', '.join(missing)}")
    for role in roles:
        policy = role.behaviors.timeout_policy
        if policy not in TIMEOUT_POLICIES:
            known = did_you_mean(policy, TIMEOUT_POLICIES)
            notes.append(f'{role.name}: timeout_policy "{policy}" has the limits of "default"{known}')
    unused = sorted({key for role in roles for key in role.behaviors.model_fields_set & WITHOUT_EFFECT})
    return (*notes, f"behaviors: {', '.join(unused)} have no effect here") if unused else tuple(notes)


def _other_catalogs(folder: Path) -> str:
    named = [shlex.quote(str(file)) for file in sorted(folder.glob("*.y*ml"))]
    if not named:
        return hint("no_catalog", "Write one, or name another folder with --roles.")
    return f"A catalog of another name is given as a file: --roles {' or '.join(named[:MAX_SHOWN_FILES])}"


def _check_names(sources: Sequence[RoleSource], roles: Sequence[RoleSpec]) -> None:
    """Reject roles that would share a folder of the run folder, even on a disk that ignores case.

    ``planner.2`` is the folder of the second process of ``planner``.
    """
    taken: dict[str, str] = {}
    for source, role in zip(sources, roles, strict=True):
        folded = role.name.casefold()
        if folded in taken:
            raise source.place("name").error(f'"{role.name}" is taken by the role "{taken[folded]}"')
        taken[folded] = role.name
    for source, role in zip(sources, roles, strict=True):
        stem, _, number = role.name.casefold().rpartition(".")
        if number.isdigit() and stem in taken:
            raise source.place("name").error(
                f'"{role.name}" is what a second process of "{taken[stem]}" is called', "Choose another name."
            )


def _check_dependencies(sources: Sequence[RoleSource], roles: Sequence[RoleSpec]) -> None:
    names = [role.name for role in roles]
    for source, role in zip(sources, roles, strict=True):
        for index, needed in enumerate(role.depends_on):
            if needed not in names:
                raise (source.place("depends_on") / index).unknown("role", needed, names)
    try:
        TopologicalSorter({role.name: role.depends_on for role in roles}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        place = sources[names.index(circle[0])].place("depends_on")
        raise place.error(f"the roles wait for each other: {' -> '.join(reversed(circle))}") from error


def _check_tools(
    sources: Sequence[RoleSource], roles: Sequence[RoleSpec], tool_names: Callable[[], Collection[str]]
) -> None:
    known = tool_names() if any(role.tools for role in roles) else ()
    for source, role in zip(sources, roles, strict=True):
        for index, name in enumerate(role.tools):
            place = source.place("tools") / index
            if name not in known:
                message, hint = no_such_part("tool", "codex_multi_role.tools", name, known)
                raise place.error(message, hint)
            if name in role.tools[:index]:
                raise place.error(f'"{name}" is listed twice')
