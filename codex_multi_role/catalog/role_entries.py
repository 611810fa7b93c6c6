"""Roles as written in a catalog: inline, in their own file, or both; merged into ``RoleSpec``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    StrictBool,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from codex_multi_role.catalog.definition import (
    NULL,
    WHOLE_NUMBER,
    Definition,
    Named,
    Nested,
    ProtectedGlobs,
    Takes,
    Texts,
    check_schema,
    optional,
    schema_or_path,
)
from codex_multi_role.catalog.mcp_servers import McpServer, ServerName
from codex_multi_role.catalog.prompts import fill
from codex_multi_role.catalog.role_spec import (
    ApprovalPolicy,
    AutoApprove,
    Name,
    PromptFlags,
    ReasoningEffort,
    RoleBehaviors,
    RoleLimits,
    RoleSpec,
    Sandbox,
)
from codex_multi_role.catalog.source_files import SourceFiles
from codex_multi_role.errors import DefinitionError
from codex_multi_role.option import as_typed
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.reading.yaml_source import validate

Text = Annotated[str, StringConstraints(min_length=1)]
_MERGED_KEY_BY_KEY = {"prompt_flags", "behaviors", "auto_approve", "limits", "mcp_servers", "codex_config"}
MOST_STEPS = 50
# Keys that the catalog resolves; all others go into the RoleSpec as they are.
_RESOLVED = {"role_file", "prompt_file", "schema_hint_template", "schema_hint_params", "output_schema"}


BLANK = {"type": "string", "pattern": r"^\s*$"}


class RoleSettings(Definition):
    """The keys that ``defaults`` may have and every role may override. Blank text counts as not given."""

    reasoning_effort: ReasoningEffort | None = Field(
        default=None,
        description="`none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or `ultra`; by default Codex's own.",
    )
    prompt_flags: Nested[PromptFlags] = optional(
        PromptFlags(), "What the prompt allows the role to do; its sandbox and approval policy follow from it."
    )
    behaviors: Nested[RoleBehaviors] = optional(
        RoleBehaviors(), "What happens with its answer, and how patient the run is."
    )
    sandbox: Sandbox | None = Field(
        default=None,
        description="Overrides what follows from `prompt_flags`. No sandboxed role can write where the runs are.",
    )
    approval_policy: ApprovalPolicy | None = Field(
        default=None, description="Overrides what follows from `prompt_flags`: when Codex asks for approval."
    )
    auto_approve: Nested[AutoApprove] = optional(AutoApprove(), "What is accepted if Codex asks to leave its sandbox.")
    limits: Nested[RoleLimits] = optional(RoleLimits(), "Deadlines of a turn, and what the role may use in one run.")
    protect: Takes[ProtectedGlobs, Texts] = optional(
        (), "Globs of files that it must leave as they are, such as `tests/**`."
    )
    mcp_servers: Named[ServerName, McpServer | None] = optional(
        {}, "MCP servers by name, merged with those of `defaults`; null removes one."
    )
    codex_config: Named[str, JsonValue] = optional(
        {}, "Codex settings of this role. `agents.enabled: true` switches sub-agents on; their tokens count."
    )
    project_instructions: StrictBool = Field(
        default=True, description="Whether it gets the project's `AGENTS.md` files and the skills that Codex finds."
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        reference = super().__get_pydantic_json_schema__(core_schema, handler)
        for value in handler.resolve_ref_schema(reference)["properties"].values():
            if NULL in value.get("anyOf", ()):
                value["anyOf"].append(BLANK)
        return reference

    @model_validator(mode="before")
    @classmethod
    def _blank_is_not_given(cls, data: object) -> object:
        if isinstance(data, Mapping):
            blank = {key for key, value in data.items() if isinstance(value, str) and not value.strip()}
            return {key: value for key, value in data.items() if key not in blank & cls.known_keys()}
        return data


class RoleFile(RoleSettings):
    """A role in its own file."""

    name: Name | None = Field(default=None, description="The role's name, which its folder in a run has as well.")
    model: str | None = Field(default=None, description="The model; overrides `model_env` and `--model`.")
    model_env: str | None = Field(
        default=None, description="An environment variable that names the model; overrides `--model`."
    )
    prompt_text: str | None = Field(
        default=None, description="The instructions; overrides `prompt_file`. One of the two is required."
    )
    prompt_file: str | None = Field(default=None, description="A file with the instructions, relative to the catalog.")
    skills: Takes[tuple[Text, ...], Texts] = optional(
        (), "Codex skills by name: those in `skills/` beside the catalog, the project's or the user's."
    )
    depends_on: Takes[tuple[str, ...], Texts] = optional(
        (), "Roles whose handoffs it gets. Roles that do not depend on each other work in parallel."
    )
    schema_hint_template: str | None = Field(
        default=None, description="The entry of the catalog's `schema_hints` that it is shown; its name by default."
    )
    schema_hint_params: Named[Text, JsonValue] = optional({}, "Values for the placeholders of that entry.")
    output_schema: Annotated[Any, AfterValidator(schema_or_path), WithJsonSchema({"type": ["object", "string"]})] = (
        Field(
            default=None,
            description="JSON Schema of its answer, inline or a file; the answer is validated against it.",
        )
    )
    strict_output: StrictBool = Field(
        default=False,
        description="An answer that does not match its schema as it stands is asked for again, never corrected.",
    )
    tools: Takes[tuple[Text, ...], Texts] = optional((), "Tools that its model may call besides Codex's own.")
    max_steps: Annotated[int, Field(ge=0, le=MOST_STEPS), WHOLE_NUMBER] = Field(
        default=0,
        description="How often a turn is continued that ended with plain text instead of its JSON or `terminate`.",
    )
    optional: StrictBool = Field(default=False, description="The run continues if the role fails.")


class RoleEntry(RoleFile):
    """An entry of the catalog's ``roles``; its keys override those of its ``role_file``."""

    role_file: str | None = Field(
        default=None, description="A file with the rest of the role, relative to the catalog."
    )


@dataclass(frozen=True)
class RoleSource:
    """One role's entry and file, and where each key was written."""

    catalog: Path
    index: int
    entry: RoleEntry
    path: Path
    file: RoleFile

    @classmethod
    def read(cls, index: int, entry: RoleEntry, files: SourceFiles) -> RoleSource:
        """Raises ``DefinitionError`` for an invalid ``role_file``, or one that names another role."""
        if entry.role_file is None:
            return cls(files.catalog, index, entry, files.catalog, RoleFile())
        path = files.path(entry.role_file)
        place = Place(files.catalog, ("roles", index, "role_file"))
        source = cls(files.catalog, index, entry, path, read_role_file(entry.role_file, place, files))
        if entry.name and source.file.name and entry.name != source.file.name:
            raise source.place("name").error(f'"{entry.name}", but {path} says "{source.file.name}"')
        return source

    def place(self, key: str) -> Place:
        """Where ``key`` is set; the catalog's entry for a key that is not."""
        if key in self.file.model_fields_set and key not in self.entry.model_fields_set:
            return Place(self.path, (key,))
        return Place(self.catalog, ("roles", self.index, key))

    def merged(self, defaults: RoleSettings) -> dict[str, Any]:
        """Only the given keys: those of the defaults, then the file's, then the entry's."""
        merged: dict[str, Any] = {}
        for layer in (defaults, self.file, self.entry):
            for key, value in layer.model_dump(exclude_unset=True).items():
                merged[key] = merged.get(key, {}) | value if key in _MERGED_KEY_BY_KEY else value
        return merged

    def spec(self, defaults: RoleSettings, schema_hints: Mapping[str, str], files: SourceFiles) -> RoleSpec:
        """The finished role. Raises one ``DefinitionError`` for all mistakes."""
        given = self.merged(defaults)
        if "name" not in given:
            raise self.missing("name")
        resolved: dict[str, object] = {
            "mcp_servers": {name: server for name, server in given.get("mcp_servers", {}).items() if server},
            "source": self.path,
        }
        problems = Problems()
        with problems.collected():
            resolved["prompt_text"] = self._prompt_text(given, files)
        with problems.collected():
            resolved["output_schema"] = self._output_schema(given, files)
        with problems.collected():
            resolved["schema_hint"] = self._schema_hint(given, schema_hints, resolved.get("output_schema"))
        with problems.collected():
            resolved["skills"] = self._skills(given, files)
        problems.raise_found()
        role = RoleSpec.model_validate({key: value for key, value in given.items() if key not in _RESOLVED} | resolved)
        self._check_mcp_servers(role)
        return role

    def missing(self, key: str, hint: str = "") -> DefinitionError:
        """The error for a key that neither the entry nor the file has."""
        entry = Place(self.catalog, ("roles", self.index)) if self.entry.role_file is None else Place(self.path)
        return entry.key(key).error(f'missing key "{key}"', hint)

    def _check_mcp_servers(self, role: RoleSpec) -> None:
        """Reject servers that are defined in two places, and an approval that would have no effect."""
        place = self.place("mcp_servers")
        twice = [key for key in role.codex_config if key.partition(".")[0].strip("\"' ") == "mcp_servers"]
        if role.mcp_servers and twice:
            raise place.error(
                f"the role's codex_config sets {twice[0]} as well, at {self.place('codex_config')}",
                "Keep the MCP servers of a role in one of the two.",
            )
        open_servers = [
            name for name, each in role.mcp_servers.items() if {each.approval, *each.tools.values()} != {"always"}
        ]
        if open_servers and (role.sandbox, role.approval_policy) == ("danger-full-access", "never"):
            raise (place / open_servers[0]).error(
                "Codex approves every call of a role with sandbox: danger-full-access and approval_policy: never",
                "Set approval: always, or approval_policy: on-request.",
            )

    def _prompt_text(self, given: dict[str, Any], files: SourceFiles) -> str:
        if "prompt_text" in given:
            return str(given["prompt_text"])
        if "prompt_file" in given:
            return files.text(given["prompt_file"], self.place("prompt_file"))
        raise self.missing("prompt_text", "Give prompt_text or prompt_file.")

    def _schema_hint(self, given: dict[str, Any], schema_hints: Mapping[str, str], schema: object) -> str:
        """The role's own hint, otherwise none if it has a schema, which the hint for all roles would contradict."""
        template = given.get("schema_hint_template", given["name"])
        if "schema_hint_template" in given and template not in schema_hints:
            raise self.place("schema_hint_template").unknown("schema hint", template, schema_hints)
        if template not in schema_hints and schema is not None:
            return ""
        parameters = {key: as_typed(value) for key, value in given.get("schema_hint_params", {}).items()}
        text = schema_hints.get(template, schema_hints.get("default", ""))
        return fill(text, {"role_name": given["name"]} | parameters)

    def _skills(self, given: dict[str, Any], files: SourceFiles) -> tuple[str, ...]:
        """The names by which Codex knows them."""
        names = []
        for index, name in enumerate(given.get("skills", ())):
            try:
                names.append(files.skill(name))
            except DefinitionError as error:
                raise (self.place("skills") / index).error(str(error), error.hint) from error
        return tuple(dict.fromkeys(names))

    def _output_schema(self, given: dict[str, Any], files: SourceFiles) -> dict[str, JsonValue] | None:
        schema = given.get("output_schema")
        if schema is None:
            return None
        if isinstance(schema, dict) and self.path.parent == packaged_roles():
            return schema  # valid, and jsonschema would cost each start of the shipped team 0.05 s
        if isinstance(schema, str):
            return check_schema(files.data(schema, self.place("output_schema")), Place(files.path(schema)))
        return check_schema(schema, self.place("output_schema"))


def read_role_file(reference: str, place: Place, files: SourceFiles) -> RoleFile:
    """The role's own file, which is named at ``place``. Raises ``DefinitionError``."""
    return validate(RoleFile, files.data(reference, place), files.path(reference))
