"""One step of a flow: what it does, under which conditions and limits, and the routes from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, JsonValue, StrictBool, StringConstraints, model_validator
from pydantic_core import CoreSchema

from codex_multi_role.catalog.definition import (
    NULL,
    NUMBER,
    WHOLE_NUMBER,
    WHOLE_NUMBER_OR_TEXT,
    Alternatives,
    Definition,
    Items,
    Named,
    Nested,
    Takes,
    optional,
    yaml_key,
)
from codex_multi_role.catalog.role_spec import Name
from codex_multi_role.catalog.shown_fields import OF_STEP
from codex_multi_role.reading.places import WrongKey

EVERY_ROLE = "*"
ROLE_ITEM = "{{ item }}"
"""Asks the role that the item names."""
UNNAMED = "unnamed"
"""Instead of an id where neither it nor the kind is given, so that only the missing kind is reported."""
# The keys that say what a step does, exactly one per step. A new kind is another field of StepSpec, listed here with
# the keys that belong only to it.
STEP_KINDS: dict[str, frozenset[str]] = {
    "ask": frozenset({"roles", "with_", "prompt", "prompt_replaces", "reply", "isolate", "merge"}),
    "check": frozenset({"with_", "repeatable"}),
    "review": frozenset({"show", "options", "fields", "time_limit_seconds", "default"}),
    "call": frozenset({"with_", "max_depth", "isolate", "merge"}),
}
PLACE_ENDED = "items no longer run on other machines; many goals can"
"""Why a step cannot have the key ``place``, which earlier versions had."""
FAN_OUT_KEYS = frozenset({"as_", "concurrency", "max_items", "needs", "until", "on_item_error"})
NOT_BESIDE_LISTS = ("as", "for_each", "max_items", "needs", "roles")

RESERVED_FIELDS = frozenset({"approved", "comment", "comments", "by", "at", "option"}) | OF_STEP
"""What templates see of every review, besides the fields that it declares."""

Text = Annotated[str, StringConstraints(min_length=1)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
StateName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z_]{0,39}$")]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), NUMBER]


OF_END = ("exit", "reason", "suggest")


class RouteSpec(Definition):
    """One entry of ``next``: leads ``to`` a step, or to the ``end`` of the run with that outcome.

    A command that people may type (``suggest``) uses nothing that a model wrote.
    """

    alternatives: ClassVar[Alternatives] = {"to": (), "end": OF_END}

    when: Text | None = Field(default=None, description="A condition; without one the entry is always taken.")
    to: str | None = Field(default=None, description="The step that follows.")
    end: Text | None = Field(default=None, description="The outcome with which the run ends.")
    exit: Annotated[Literal[0, 1], WHOLE_NUMBER] | None = Field(
        default=None, description="The exit code of that end; 0 by default."
    )
    reason: Text | None = Field(default=None, description="Why it ends (a template).")
    suggest: Annotated[str, StringConstraints(pattern=r"^(resume|fork|show) RUN( |$)")] | None = Field(
        default=None,
        description="A helpful command: `fork RUN --from plan` (a template of `inputs`, `cycle` and `cycles`).",
    )

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if (self.to is None) == (self.end is None):
            raise WrongKey("give either to or end", *([] if self.end is None else ["end"]))
        for key in OF_END:
            if getattr(self, key) is not None and self.end is None:
                raise WrongKey(f"{key} belongs to end", key)
        return self


class Retry(Definition):
    """Tries after a failure."""

    attempts: Annotated[int, Field(ge=2, le=10), WHOLE_NUMBER] = Field(description="Tries, including the first one.")
    backoff_seconds: Annotated[float, Field(ge=0, le=3600), NUMBER] = Field(
        default=1.0, description="The pause before the second try; it doubles for each later one."
    )


class StepLimits(Definition):
    """Deadlines: ``seconds`` of a step or of each of its items; of an ask, those that override its role's."""

    idle_seconds: Seconds | None = Field(default=None, description="Longest silence; overrides the role's.")
    turn_seconds: Seconds | None = Field(default=None, description="Longest turn; overrides the role's.")
    seconds: Seconds | None = Field(
        default=None, description="Longest work, all tries included; past it, the step or the item fails."
    )


class StepSpec(Definition):
    """One step. Exactly one of ``ask``, ``check``, ``review`` and ``call``; ``id`` is its name unless given.

    ``*`` asks the roles in the order of the catalog's ``dependencies()``. A copy that ``merge: none`` leaves is merged
    by the check ``merge``, for the ``copy`` that the result names. An item is skipped if one that it ``needs`` failed.
    ``retry`` and ``on_error`` apply to each item separately.
    """

    alternatives: ClassVar[Alternatives] = {
        kind: {key.rstrip("_") for key in keys} for kind, keys in STEP_KINDS.items()
    }

    ask: Takes[Text | None, Text | Sequence[str] | None] = optional(
        None,
        "A role to ask, `*` for every role of the catalog, a list of roles to ask at once, or a template of `roles`.",
    )
    check: Text | None = Field(default=None, description="A check to run.")
    review: Text | None = Field(default=None, description="A question to a person (a template).")
    call: Text | None = Field(default=None, description="A flow to call.")
    id: Name = Field(description="The step's name; by default the role, check or flow that it names.")
    title: Text | None = Field(
        default=None, description="What people call the step or, with `for_each`, each of its items (a template)."
    )
    with_: Named[str, JsonValue] = optional(
        {}, "What a role gets instead of the previous answer; a check's options; a called flow's inputs."
    )
    roles: Items[Name] = optional((), "The roles that a template in `ask` chooses from, for each item of `for_each`.")
    prompt: Text | None = Field(
        default=None, description="The task (a template), which the role gets after its instructions."
    )
    prompt_replaces: StrictBool = Field(
        default=False, description="Send the `prompt` instead of the role's instructions."
    )
    reply: Nested[dict[str, JsonValue] | None] = optional(
        None, "A JSON Schema that replaces the role's `output_schema`."
    )
    limits: Nested[StepLimits | None] = optional(
        None, "Deadlines: of the turn, which override the role's, or of the check."
    )
    isolate: Literal["worktree"] | None = Field(
        default=None, description="Ask, or walk the called flow, in a git worktree (elsewhere a copy) of the workspace."
    )
    merge: Literal["all", "none"] = Field(default="all", description="Whether the copy is merged back after the step.")
    show: Text | None = Field(default=None, description="What a person sees with the question (a template).")
    options: Items[Text] = optional((), "What a person chooses from; the choice is `steps.<id>.option`.")
    fields: Named[VariableName, dict[str, JsonValue]] = optional(
        {}, "Values that a person gives: a JSON Schema for each; one with a `default` may be left out."
    )
    time_limit_seconds: Seconds | None = Field(
        default=None, description="How long a review waits before its `default` applies."
    )
    default: Text | None = Field(
        default=None,
        description="The answer after the time limit: `reject`, one of the `options`, or `approve` if all `fields` "
        "have defaults.",
    )
    max_depth: Annotated[int, Field(ge=1, le=50), WHOLE_NUMBER] | None = Field(
        default=None, description="The bound of a flow that calls itself."
    )
    for_each: Takes[Text | list[JsonValue] | None, Sequence[object] | None] = optional(
        None, "A list, or a template of one: the step runs once per item."
    )
    as_: VariableName = Field(default="item", description="The name of the item in templates.")
    concurrency: Annotated[Annotated[int, Field(ge=1, le=64)] | Text, WHOLE_NUMBER_OR_TEXT] = Field(
        default=1, description="Items at the same time (a number, or a template of one)."
    )
    needs: Text | None = Field(
        default=None, description="A template of the ids that an item waits for; their results are `needed`."
    )
    max_items: Annotated[int, Field(ge=1, le=100_000), WHOLE_NUMBER] | None = Field(
        default=None, description="The bound of a `for_each` template, which requires it."
    )
    until: Text | None = Field(
        default=None,
        description="A condition on the `results` so far that ends the fan-out; the other items are cancelled.",
    )
    on_item_error: Literal["stop", "cancel"] = Field(
        default="stop",
        description="If an item ends the run: `stop` lets the running ones finish, `cancel` ends them as well.",
    )
    retry: Nested[Retry | None] = optional(None, "Tries and pauses after a failure.")
    on_error: Literal["fail", "skip"] = Field(default="fail", description="`fail` ends the run; `skip` continues.")
    on_bad: Literal["fail", "continue"] = Field(
        default="fail",
        description="What a bad result does that no `when` of `next` reads: `fail` ends the flow with exit 1; "
        "`continue` is for a step that only measures.",
    )
    repeatable: StrictBool = Field(
        default=True,
        description="Whether a check that was interrupted may run again; `false` asks a person first (exit code 4).",
    )
    set: Named[VariableName, JsonValue] = optional({}, "New values of run variables after the step (templates).")
    next: Items[RouteSpec] = optional(
        (), "Where to go: the first entry whose `when` is true, otherwise the following step."
    )
    max_visits: Annotated[int, Field(ge=1), WHOLE_NUMBER] | None = Field(
        default=None, description="How often the step may run."
    )
    state: StateName | None = Field(default=None, description="The run's state from this step on.")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        """``id`` is only required where nothing else names the step."""
        reference = super().__get_pydantic_json_schema__(core_schema, handler)
        schema = handler.resolve_ref_schema(reference)
        schema.pop("required", None)
        one = {"type": "string", "minLength": 1}
        about = schema["properties"]["ask"]["description"]
        several = {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}
        schema["properties"]["ask"] = {"description": about, "anyOf": [one, several, NULL]}
        given = schema["properties"]["id"]
        schema["properties"]["id"] = {"description": given.pop("description"), "anyOf": [given, NULL]}
        named = {"required": ["id"], "properties": {"id": {"not": NULL}}}
        no_name = {"anyOf": [{"const": EVERY_ROLE}, _TEMPLATE, _LIST]}
        unnamed = {"properties": {"review": NULL, "ask": {"not": no_name}}}
        schema["anyOf"] = [named, unnamed]
        schema["allOf"] = [*_beside_asks()]
        return reference

    @model_validator(mode="before")
    @classmethod
    def _default_id(cls, data: object) -> object:
        if not isinstance(data, Mapping) or data.get("id") is not None:
            return data
        if data.get("ask") == EVERY_ROLE:
            raise WrongKey('a step that asks "*" needs an id', "ask")
        if data.get("review") is not None:
            raise WrongKey("a review needs an id", "review")
        return {**data, "id": next((data[kind] for kind in STEP_KINDS if isinstance(data.get(kind), str)), UNNAMED)}

    @model_validator(mode="before")
    @classmethod
    def _ask_at_once(cls, data: object) -> object:
        """A list of roles: a fan-out over their names, each of which is asked by one item."""
        asked = data.get("ask") if isinstance(data, Mapping) else None
        if isinstance(asked, str) and "," in asked and "{{" not in asked:
            raise WrongKey(f"ask: several roles are a list: [{asked}]", "ask")
        if not isinstance(data, Mapping) or not isinstance(asked, list | tuple):
            return data
        if not asked:
            raise WrongKey("ask: the list is empty; name at least one role", "ask")
        if data.get("id") is None:
            raise WrongKey("a step that asks a list of roles needs an id", "ask")
        if not all(isinstance(each, str) and each for each in asked) or len({*asked}) < len(asked):
            raise WrongKey("ask: a list names each role once", "ask")
        if stray := [key for key in NOT_BESIDE_LISTS if data.get(key) is not None]:
            raise WrongKey(f"{stray[0]} does not go with a list of roles", stray[0])
        names = [*asked]
        return {"concurrency": len(names), **data, "ask": ROLE_ITEM, "roles": names, "for_each": names}

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        is_template = self.ask is not None and "{{" in self.ask
        if is_template and not self.roles:
            raise WrongKey("ask: a template needs roles, the list that it chooses from", "ask")
        if self.roles and not is_template:
            raise WrongKey("roles belongs to a template in ask", "roles")
        if self.roles and self.for_each is None:
            raise WrongKey("ask: a template chooses the role of an item, so it needs for_each", "ask")
        return self

    @model_validator(mode="before")
    @classmethod
    def _refuse_ended_keys(cls, given: object) -> object:
        if isinstance(given, Mapping) and given.get("place") is not None:
            raise WrongKey(PLACE_ENDED, "place")
        return given

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        kinds = [kind for kind in STEP_KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise WrongKey(f"give exactly one of {', '.join(STEP_KINDS)}", *kinds[1:2])
        given = self.model_fields_set
        for kind, keys in STEP_KINDS.items():
            if stray := sorted(map(self.written_name, given & keys - STEP_KINDS[self.kind])):
                raise WrongKey(f"{stray[0]} belongs to {kind}", stray[0])
        if self.prompt_replaces and self.prompt is None:
            raise WrongKey("prompt_replaces needs a prompt to send instead", "prompt_replaces")
        if self.for_each is None and (stray := sorted(map(self.written_name, given & FAN_OUT_KEYS))):
            raise WrongKey(f"{stray[0]} belongs to for_each", stray[0])
        return self

    @model_validator(mode="after")
    def _check_fan_out(self) -> Self:
        if self.for_each is not None and self.ask == EVERY_ROLE:
            raise WrongKey('for_each goes with one role, not with "*"', "for_each")
        if isinstance(self.for_each, str) and self.max_items is None:
            raise WrongKey("for_each of a template needs max_items: nothing else bounds it", "for_each")
        if self.until is not None and self.isolate is not None and self.merge != "none":
            problem = "until with isolate requires merge: none; a check merge merges the result that counts"
            raise WrongKey(problem, "until")
        if "merge" in self.model_fields_set and self.isolate is None:
            raise WrongKey("merge belongs to isolate", "merge")
        if self.isolate is not None and self.ask == EVERY_ROLE:
            raise WrongKey('isolate goes with one role, not with "*"', "isolate")
        if self.on_bad == "continue" and self.review is not None:
            problem = "on_bad: continue does not go with review: a rejection is for `next` to route on"
            raise WrongKey(problem, "on_bad")
        if self.time_limit_seconds is not None and self.default is None:
            problem = "a review with a time limit needs the default answer that holds then"
            raise WrongKey(problem, "time_limit_seconds")
        return self

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        of_turns = {"idle_seconds", "turn_seconds"}
        if self.limits is not None and self.ask is None and (stray := sorted(self.limits.model_fields_set & of_turns)):
            raise WrongKey(f"{stray[0]} belongs to ask", "limits", stray[0])
        return self

    @model_validator(mode="after")
    def _check_answers(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise WrongKey("options: each must be given once", "options")
        if taken := sorted(RESERVED_FIELDS & self.fields.keys()):
            raise WrongKey(f"{taken[0]} is what every answer has; choose another name", "fields", taken[0])
        known = ("reject", *self.options, *(("approve",) if self.fields and not self.options else ()))
        if self.default is not None and self.default not in known:
            raise WrongKey(f"default: give one of {', '.join(known)}", "default")
        if self.default not in (None, "reject") and (
            missing := [name for name, schema in self.fields.items() if "default" not in schema]
        ):
            raise WrongKey(f"default: {self.default} needs a default of the field {missing[0]}", "default")
        return self

    @property
    def asked(self) -> tuple[str, ...]:
        """The roles that the step may ask; `EVERY_ROLE` for all of the catalog."""
        return self.roles or ((self.ask,) if self.ask is not None else ())

    @property
    def asks_at_once(self) -> bool:
        """Whether each item asks the role that it names."""
        return self.ask == ROLE_ITEM and self.for_each == [*self.roles]

    @property
    def items_are_roles(self) -> bool:
        """Whether an item only names the role that it asks, as those of a list of roles."""
        return self.ask in (ROLE_ITEM, f"{{{{ {self.as_} }}}}")

    def asking(self, role: str) -> Self:
        """The step of one item, which asks this one of its ``roles``."""
        return self.model_copy(update={"ask": role, "roles": ()})

    @property
    def kind(self) -> str:
        """The key of ``STEP_KINDS`` that is given."""
        return next(kind for kind in STEP_KINDS if getattr(self, kind) is not None)


_TEMPLATE: dict[str, Any] = {"type": "string", "pattern": r"\{\{"}
_LIST: dict[str, Any] = {"type": "array"}


def _beside_asks() -> Iterator[dict[str, Any]]:
    """The JSON Schemas of what may be given beside one role, a list of roles, and a template of a role."""
    of_items = {yaml_key(key): NULL for key in sorted(FAN_OUT_KEYS)}
    yield {"if": _has(for_each=NULL, ask={"not": _LIST}), "then": _has(**of_items)}
    yield {"if": _asks(_LIST), "then": _has(**dict.fromkeys(NOT_BESIDE_LISTS, NULL))}
    chosen = {"required": ["roles", "for_each"], **_has(roles={"type": "array", "minItems": 1}, for_each={"not": NULL})}
    yield {"if": _asks(_TEMPLATE), "then": chosen, "else": _has(roles={"maxItems": 0})}


def _has(**properties: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"properties": properties}


def _asks(shape: dict[str, Any]) -> dict[str, Any]:
    return {"required": ["ask"], **_has(ask=shape)}
