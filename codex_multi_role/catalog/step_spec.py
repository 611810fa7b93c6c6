"""One step of a flow: what it does, under which conditions and limits, and the routes from it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, JsonValue, StringConstraints, model_validator
from pydantic_core import CoreSchema

from codex_multi_role.catalog.definition import NULL, Alternatives, Definition
from codex_multi_role.catalog.role_spec import Name

EVERY_ROLE = "*"
UNNAMED = "unnamed"
"""Instead of an id where neither it nor the kind is given, so that only the missing kind is reported."""
# The keys that say what a step does, exactly one per step. A new kind is another field of StepSpec, listed here with
# the keys that belong only to it.
STEP_KINDS: dict[str, frozenset[str]] = {
    "ask": frozenset({"with_", "prompt", "reply", "limits", "isolate", "merge"}),
    "check": frozenset({"with_"}),
    "review": frozenset({"show", "time_limit_seconds", "default"}),
    "call": frozenset({"with_", "max_depth"}),
}
FAN_OUT_KEYS = frozenset({"as_", "concurrency", "max_items", "needs"})

Text = Annotated[str, StringConstraints(min_length=1)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
StateName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z_]{0,39}$")]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


OF_END = ("exit", "reason", "suggest")


class Route(Definition):
    """One entry of ``next``: taken if ``when`` is true or missing.

    Leads ``to`` a step, or to the ``end`` of the run with that outcome. ``exit`` is then the exit code (None: 0),
    ``reason`` says why, and ``suggest`` is a helpful command (``fork RUN --from plan``). Both are templates, but a
    command that people may type uses nothing that a model wrote.
    """

    alternatives: ClassVar[Alternatives] = {"to": (), "end": OF_END}

    when: Text | None = None
    to: str | None = None
    end: Text | None = None
    exit: Literal[0, 1] | None = None
    reason: Text | None = None
    suggest: Annotated[str, StringConstraints(pattern=r"^(resume|fork|restart|show) RUN( |$)")] | None = None

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if (self.to is None) == (self.end is None):
            raise ValueError("give either to or end")
        for key in OF_END:
            if getattr(self, key) is not None and self.end is None:
                raise ValueError(f"{key} belongs to end")
        return self


class Retry(Definition):
    """``attempts`` includes the first one; the pause before the next starts at ``backoff_seconds`` and doubles."""

    attempts: Annotated[int, Field(ge=2, le=10)]
    backoff_seconds: Annotated[float, Field(ge=0, le=3600)] = 1.0


class StepLimits(Definition):
    """Limits of an ask that override its role's."""

    idle_seconds: Seconds | None = None
    turn_seconds: Seconds | None = None


class StepSpec(Definition):
    """One step. Exactly one of ``ask``, ``check``, ``review`` and ``call``; ``id`` is its name unless given.

    ``ask`` names a role, or is ``*``: every role of the catalog, ordered by its ``dependencies()``. ``prompt`` (a
    template) and ``reply`` (a JSON Schema) replace the role's own, ``with`` replaces the handoff it is given.
    ``isolate`` gives it a copy of the workspace, merged back after the step unless ``merge`` is none; then the check
    ``merge`` does it for the ``copy`` that the result names.
    ``check`` names a check and ``with`` its arguments. ``review`` is a question to a person; without an answer after
    ``time_limit_seconds``, ``default`` applies. ``call`` names a flow and ``with`` its inputs; ``max_depth`` bounds a
    flow that calls itself.

    ``for_each`` (a list, or a template of one, with at most ``max_items``) runs the step once per item, named ``as``,
    ``concurrency`` at a time. ``needs``, a template, gives the ids (the items' own ``id``) that an item waits for: it
    sees their results as ``needed``, and is skipped if one of them failed. ``retry`` and ``on_error`` apply to a
    failure, separately for each item. ``set`` gives run variables new values afterwards. ``next``: the first entry
    whose condition is true, otherwise the following step. ``max_visits``: a bound. ``state``: the run's from here on.
    """

    alternatives: ClassVar[Alternatives] = {
        kind: {key.rstrip("_") for key in keys} for kind, keys in STEP_KINDS.items()
    }

    ask: Text | None = None
    check: Text | None = None
    review: Text | None = None
    call: Text | None = None
    id: Name
    with_: dict[str, JsonValue] = Field(default_factory=dict, alias="with")
    prompt: Text | None = None
    reply: dict[str, JsonValue] | None = None
    limits: StepLimits | None = None
    isolate: Literal["worktree"] | None = None
    merge: Literal["all", "none"] = "all"
    show: Text | None = None
    time_limit_seconds: Seconds | None = None
    default: Literal["reject"] | None = None
    max_depth: Annotated[int, Field(ge=1, le=50)] | None = None
    for_each: Text | list[JsonValue] | None = None
    as_: VariableName = Field(default="item", alias="as")
    concurrency: Annotated[int, Field(ge=1, le=64)] | Text = 1
    needs: Text | None = None
    max_items: Annotated[int, Field(ge=1, le=100_000)] | None = None
    retry: Retry | None = None
    on_error: Literal["fail", "skip"] = "fail"
    set: dict[VariableName, JsonValue] = Field(default_factory=dict)
    next: tuple[Route, ...] = ()
    max_visits: Annotated[int, Field(ge=1)] | None = None
    state: StateName | None = None

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        """``id`` is only required where nothing else names the step."""
        reference = super().__get_pydantic_json_schema__(core_schema, handler)
        schema = handler.resolve_ref_schema(reference)
        schema.pop("required", None)
        schema["properties"]["id"] = {"anyOf": [schema["properties"]["id"], NULL]}
        named = {"required": ["id"], "properties": {"id": {"not": NULL}}}
        unnamed = {"properties": {"review": NULL, "ask": {"not": {"const": EVERY_ROLE}}}}
        schema["anyOf"] = [named, unnamed]
        schema["if"] = {"properties": {"for_each": NULL}}
        schema["then"] = {"properties": {key.rstrip("_"): NULL for key in sorted(FAN_OUT_KEYS)}}
        return reference

    @model_validator(mode="before")
    @classmethod
    def _default_id(cls, data: object) -> object:
        if not isinstance(data, dict) or data.get("id") is not None:
            return data
        if data.get("ask") == EVERY_ROLE:
            raise ValueError('a step that asks "*" needs an id')
        if data.get("review") is not None:
            raise ValueError("a review needs an id")
        return data | {"id": next((data[kind] for kind in STEP_KINDS if isinstance(data.get(kind), str)), UNNAMED)}

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in STEP_KINDS) != 1:
            raise ValueError(f"give exactly one of {', '.join(STEP_KINDS)}")
        given = self.model_fields_set
        for kind, keys in STEP_KINDS.items():
            if stray := sorted(given & keys - STEP_KINDS[self.kind]):
                raise ValueError(f"{stray[0].rstrip('_')} belongs to {kind}")
        if self.for_each is None and (stray := sorted(given & FAN_OUT_KEYS)):
            raise ValueError(f"{stray[0].rstrip('_')} belongs to for_each")
        return self

    @model_validator(mode="after")
    def _check_fan_out(self) -> Self:
        if self.for_each is not None and self.ask == EVERY_ROLE:
            raise ValueError('for_each goes with one role, not with "*"')
        if isinstance(self.for_each, str) and self.max_items is None:
            raise ValueError("for_each of a template needs max_items: nothing else bounds it")
        if "merge" in self.model_fields_set and self.isolate is None:
            raise ValueError("merge belongs to isolate")
        if self.isolate is not None and self.ask == EVERY_ROLE:
            raise ValueError('isolate goes with one role, not with "*"')
        if self.time_limit_seconds is not None and self.default is None:
            raise ValueError("a review with a time limit needs the default answer that holds then")
        return self

    @property
    def kind(self) -> str:
        """The key of ``STEP_KINDS`` that is given."""
        return next(kind for kind in STEP_KINDS if getattr(self, kind) is not None)
