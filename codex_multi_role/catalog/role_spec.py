"""A role: its instructions, its rights, and how its Codex process is set up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    JsonValue,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from codex_multi_role.catalog.definition import NUMBER, WHOLE_NUMBER, Definition, ProtectedGlobs, pattern_in_schema
from codex_multi_role.catalog.mcp_servers import McpServer, ServerName, narrower_server
from codex_multi_role.reading.nearest import did_you_mean

Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]
ApprovalPolicy = Literal["untrusted", "on-request", "never"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), NUMBER]
Amount = Annotated[int, Field(strict=True, ge=1), WHOLE_NUMBER]
Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False), NUMBER]

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_DEFAULT_LIMITS = {"default": {}, "planner": {"idle_seconds": 300.0, "turn_seconds": 1800.0}}
TIMEOUT_POLICIES = frozenset(_DEFAULT_LIMITS)
"""The names with their own limits; any other name means ``default``, as in the original format."""
WITHOUT_EFFECT = frozenset({"is_orchestrator", "can_request_clarification", "reports_to"})


def check_name(name: str) -> str:
    """Check a name of a role or step, which becomes a folder, a template name and a command line argument."""
    if not re.fullmatch(NAME, name):
        raise ValueError(f'"{name}" cannot be a name: use up to 64 of A-Z a-z 0-9 _ . - with a letter or digit first')
    return name


Name = Annotated[str, AfterValidator(check_name), pattern_in_schema(NAME)]

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
"""Every reasoning effort of the models that the bundled binary knows. Codex sends any other text unchanged."""


def check_effort(effort: str) -> str:
    if effort not in EFFORTS:
        raise ValueError(f'unknown effort "{effort}"{did_you_mean(effort, EFFORTS)}')
    return effort


ReasoningEffort = Annotated[
    str, AfterValidator(check_effort), WithJsonSchema({"type": "string", "enum": list(EFFORTS)})
]


class PromptFlags(Definition):
    """What the prompt says the role may do; also the source of its sandbox and approval policy."""

    allow_tools: StrictBool = Field(default=True, description="It may call tools and run commands.")
    allow_read: StrictBool = Field(default=True, description="It may read files.")
    allow_write: StrictBool = Field(
        default=False, description="It may change files itself: its sandbox is `workspace-write`."
    )
    allow_file_suggestions: StrictBool = Field(
        default=False, description="Its prompt says to propose whole files in `files[]`; see `apply_files`."
    )


class RoleBehaviors(Definition):
    """What the controller does with the role's answer, and how long it waits."""

    timeout_policy: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        default="default", description="`planner` has longer limits; any other name means `default`."
    )
    apply_files: StrictBool = Field(
        default=False, description="Write the files that it proposes in `files[]` into the workspace."
    )
    can_finish: StrictBool = Field(default=False, description="Its status DONE ends the run.")
    # Part of the original format, for its dynamic mode; `WITHOUT_EFFECT` here.
    is_orchestrator: StrictBool = Field(default=False, description="No effect; part of the original format.")
    can_request_clarification: StrictBool = Field(default=True, description="No effect; part of the original format.")
    reports_to: str = Field(default="planner", description="No effect; part of the original format.")


class AutoApprove(Definition):
    """Which of Codex's approval requests are accepted without asking; the others are declined."""

    commands: StrictBool = Field(
        default=False, description="Accept commands that Codex asks to run outside its sandbox. They run without one."
    )
    file_changes: StrictBool = Field(
        default=False, description="Accept file changes that Codex asks for outside its sandbox."
    )


class RoleLimits(Definition):
    """How long a turn may take, and how much all turns of a role in one run."""

    idle_seconds: Seconds = Field(
        default=120.0, description="Longest silence; 300 by default with `timeout_policy: planner`."
    )
    turn_seconds: Seconds = Field(
        default=900.0, description="Longest turn; 1800 by default with `timeout_policy: planner`."
    )
    max_turns: Amount | None = Field(
        default=None, description="Most turns of the role in one run; unlimited by default."
    )
    max_tokens: Amount | None = Field(
        default=None,
        description="Most tokens of the role in one run, input and output; a running turn that exceeds them is ended.",
    )
    max_cost: Dollars | None = Field(
        default=None, description="Most dollars of the role in one run; its model needs a price."
    )


def _sandbox_for(data: dict[str, Any]) -> Sandbox:
    return "workspace-write" if data["prompt_flags"].allow_write else "read-only"


def _approval_policy_for(data: dict[str, Any]) -> ApprovalPolicy:
    # Codex cannot forbid commands or reading as such. Under "untrusted" it asks about every command, which is
    # declined unless auto_approve.commands.
    flags = data["prompt_flags"]
    return "on-request" if flags.allow_tools and flags.allow_read else "untrusted"


class ModelChoice(Definition):
    """Which model answers: `RoleSpec.resolved_model`."""

    model: str | None = None
    model_env: str | None = None
    reasoning_effort: ReasoningEffort | None = None


class AnswerForm(Definition):
    """What an answer looks like, and how often one is asked for that lacks its JSON."""

    schema_hint: str = ""
    output_schema: dict[str, JsonValue] | None = None
    strict_output: bool = False
    max_steps: Annotated[int, WHOLE_NUMBER] = 0


class RoleSpec(AnswerForm, ModelChoice):
    """One role, all texts resolved. Keys that are not given follow from ``prompt_flags`` and ``behaviors``.

    ``sandbox``: read-only, or workspace-write with ``allow_write``. ``approval_policy``: on-request, or untrusted
    without ``allow_tools`` or ``allow_read``. ``protect``: files it must not change. ``tools``: the controller's tools
    that its model may call. ``max_steps``: how often a turn is continued that ended without its JSON and without the
    tool ``terminate``. ``project_instructions``: whether it gets the project's AGENTS.md, and the skills that Codex
    finds. ``optional``: the run continues if the role fails. ``source``: the file that defines the role.
    ``strict_output``: answers are not corrected to match ``output_schema``.
    """

    name: Name
    prompt_text: str
    skills: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    prompt_flags: PromptFlags = PromptFlags()
    behaviors: RoleBehaviors = RoleBehaviors()
    tools: tuple[str, ...] = ()
    sandbox: Sandbox = Field(default_factory=_sandbox_for)
    approval_policy: ApprovalPolicy = Field(default_factory=_approval_policy_for)
    auto_approve: AutoApprove = AutoApprove()
    limits: RoleLimits = Field(default_factory=dict, validate_default=True)
    protect: ProtectedGlobs = ()
    mcp_servers: dict[ServerName, McpServer] = Field(default_factory=dict)
    codex_config: dict[str, JsonValue] = Field(default_factory=dict)
    project_instructions: bool = True
    optional: bool = False
    source: Path = Path()

    @field_validator("limits", mode="before")
    @classmethod
    def _fill_limits(cls, given: object, info: ValidationInfo) -> object:
        behaviors = info.data.get("behaviors")
        if isinstance(given, Mapping) and isinstance(behaviors, RoleBehaviors):
            return {**_DEFAULT_LIMITS.get(behaviors.timeout_policy, {}), **given}
        return given

    @property
    def writes_itself(self) -> bool:
        """Whether the role's own Codex can change files."""
        return self.sandbox != "read-only" or self.auto_approve.file_changes

    @property
    def may_change_workspace(self) -> bool:
        """Whether a turn of the role can change files: by its Codex, or by the files it submits."""
        return self.writes_itself or self.behaviors.apply_files

    def resolved_model(self, environment: Mapping[str, str], run_model: str | None) -> str | None:
        """The model to request: ``model``, the value of the variable ``model_env``, or the run's; None: Codex's own."""
        from_environment = environment.get(self.model_env, "").strip() if self.model_env else ""
        return self.model or from_environment or run_model or None


_SANDBOXES = get_args(Sandbox)  # strictest first


def _narrower_permissions(then: BaseModel, now: BaseModel) -> BaseModel:
    return now.model_copy(update={name: allowed and getattr(then, name) for name, allowed in now})


_NARROWER: dict[str, Callable[[Any, Any], Any]] = {
    "sandbox": lambda then, now: min(then, now, key=_SANDBOXES.index),
    "approval_policy": lambda then, now: now if now == "untrusted" else then,
    "auto_approve": _narrower_permissions,
    "prompt_flags": _narrower_permissions,
    "behaviors": lambda then, now: now.model_copy(update={"apply_files": then.apply_files and now.apply_files}),
    "protect": lambda then, now: tuple(dict.fromkeys((*now, *then))),
    "mcp_servers": lambda then, now: {name: narrower_server(then[name], now[name]) for name in now if name in then},
    "codex_config": lambda then, _: then,  # only Codex knows what a change of it allows
}


def without_wider_rights(then: RoleSpec, now: RoleSpec) -> tuple[RoleSpec, list[str]]:
    """``now`` without the rights it has beyond ``then``, and the keys that would have granted them."""
    narrower = {key: choose(getattr(then, key), getattr(now, key)) for key, choose in _NARROWER.items()}
    refused = [key for key, value in narrower.items() if value != getattr(now, key)]
    return now.model_copy(update={key: narrower[key] for key in refused}), refused
