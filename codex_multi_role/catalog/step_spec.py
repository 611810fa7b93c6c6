"""One step of a flow: what it does, under which conditions and limits, and the routes from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    StrictBool,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from codex_multi_role.catalog.definition import (
    NULL,
    NUMBER,
    WHOLE_NUMBER,
    WHOLE_NUMBER_OR_TEXT,
    Alternatives,
    Definition,
    Items,
    Keys,
    Named,
    Nested,
    Takes,
    optional,
)
from codex_multi_role.catalog.role_spec import Name, Seconds
from codex_multi_role.catalog.shown_fields import OF_STEP
from codex_multi_role.reading.nearest import find_nearest
from codex_multi_role.reading.places import WrongKey

EVERY_ROLE = "*"
ROLE_ITEM = "{{ item }}"
"""Asks the role that the item names."""
UNNAMED = "unnamed"
"""Instead of an id where neither it nor the kind is given, so that only the missing kind is reported."""
PLACE_ENDED = "items no longer run on other machines; many goals can"
"""Why a step cannot have the key ``place``, which earlier versions had."""
NOT_BESIDE_LISTS = ("as", "items", "max_items", "needs")
"""What a ``for_each`` beside a list of roles cannot have: the roles are its items."""

TEMPLATES = {
    "with": ("with",),
    "prompt": ("prompt",),
    "review": ("review", "question"),
    "show": ("review", "show"),
    "defaults": ("review", "fields"),
}
"""What a step fills in once, or once per item: where it stands in the step."""

RESERVED_FIELDS = frozenset({"approved", "comment", "comments", "by", "at", "option"}) | OF_STEP
"""What templates see of every review, besides the fields that it declares."""

Text = Annotated[str, StringConstraints(min_length=1)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
StateName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z_]{0,39}$")]


class RouteSpec(Definition):
    """One entry of ``next``: leads ``to`` a step, or to the ``end`` of the run with that outcome.

    A command that people may type (``suggest``) uses nothing that a model wrote.
    """

    alternatives: ClassVar[Alternatives] = {"to": (), "end": ("exit", "reason", "suggest")}

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


class Retry(Definition):
    """Tries after a failure, or a bad result; of each item of a fan-out."""

    attempts: Annotated[int, Field(ge=2, le=10), WHOLE_NUMBER] = Field(description="Tries, including the first one.")
    backoff_seconds: Annotated[float, Field(ge=0, le=3600), NUMBER] = Field(
        default=1.0, description="The pause before the second try; it doubles for each later one."
    )


@dataclass(frozen=True)
class ShortFor:
    """The annotation of a group that may be written as the value of its ``key`` alone."""

    key: str

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler, /) -> CoreSchema:
        def whole(value: object) -> object:
            return value if isinstance(value, Mapping | Definition) else {self.key: value}

        return core_schema.no_info_before_validator_function(whole, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        whole = handler(core)
        own = handler.resolve_ref_schema(whole)["properties"][self.key]
        return {"anyOf": [{key: each for key, each in own.items() if key != "description"}, whole]}


End = Literal["bad", "failed"]


class ForEach(Definition):
    """A fan-out: the step once per item, with its results in the order of the items. A list of roles gives the items.

    An item is skipped if one that it ``needs`` has failed or is bad, unless the step says ``allow: [bad]``.
    """

    items: Takes[Text | list[JsonValue], str | Sequence[object]] = Field(
        description="A list, or a template of one; `for_each` may be this value alone."
    )
    as_: VariableName = Field(default="item", description="The name of the item in templates.")
    concurrency: Annotated[Annotated[int, Field(ge=1, le=64)] | Text, WHOLE_NUMBER_OR_TEXT] = Field(
        default=1, description="Items at the same time (a number, or a template of one)."
    )
    max_items: Annotated[int, Field(ge=1, le=100_000), WHOLE_NUMBER] | None = Field(
        default=None, description="The bound of a template in `items`, which requires it."
    )
    needs: Text | None = Field(
        default=None, description="A template of the ids that an item waits for; their results are `needed`."
    )
    until: Text | None = Field(
        default=None,
        description="A condition on the `results` so far that ends the fan-out; the other items are cancelled.",
    )
    on_failure: Literal["finish", "cancel"] = Field(
        default="finish",
        description="If an item ends the run: `finish` lets the running ones end, `cancel` stops them as well.",
    )
    allow: Items[End] = optional(
        (), "Which ends of items the step survives while at least one item is good: `[bad]`, `[failed]`, both."
    )

    @property
    def most_items(self) -> int:
        return len(self.items) if isinstance(self.items, list) else self.max_items or 0

    @model_validator(mode="after")
    def _check_bound(self) -> Self:
        if isinstance(self.items, str) and self.max_items is None:
            raise WrongKey("a template needs max_items: nothing else bounds it", "items")
        return self


class Isolate(Definition):
    """A git worktree (elsewhere a copy) of the workspace for the role, or for the called flow.

    A copy that ``merge: none`` leaves is merged by the check ``merge``, for the ``copy`` that the result names.
    """

    merge: Literal["all", "passed", "none"] = Field(
        default="all", description="Whether the copy is merged back after the step; `passed`: if its own tests passed."
    )


def _worktree(given: object) -> object:
    if isinstance(given, str) and given != "worktree":
        raise ValueError(f'must be "worktree" or a mapping with merge, not {json.dumps(given)}')
    return {} if isinstance(given, str) else given


Isolated = Annotated[Isolate, BeforeValidator(_worktree, json_schema_input_type=Literal["worktree"] | Isolate)]
"""As it is written: `worktree` stands for a copy that is merged back."""


class StepLimits(Definition):
    """How long a step, or each of its items, may take, and how often it may run."""

    seconds: Seconds | None = Field(
        default=None, description="Longest work, all tries included; past it, the step or the item fails."
    )
    visits: Annotated[int, Field(ge=1), WHOLE_NUMBER] | None = Field(
        default=None, description="How often the step may run; the visit after that ends the flow with exit 1."
    )


class TurnLimits(StepLimits):
    """As of any step, and those of its turns, which override the role's."""

    turn_seconds: Seconds | None = Field(default=None, description="Longest turn of an ask.")
    idle_seconds: Seconds | None = Field(default=None, description="Longest silence of a turn of an ask.")


class CallLimits(StepLimits):
    """As of any step, and the bound of a flow that calls itself."""

    depth: Annotated[int, Field(ge=1, le=50), WHOLE_NUMBER] | None = Field(
        default=None, description="How often a called flow may run within itself."
    )


class AfterSeconds(Definition):
    """The answer to a review that nobody answers in time."""

    seconds: Seconds = Field(description="How long the review waits.")
    answer: Text = Field(
        description="What holds then: `reject`, one of the `options`, or `approve` if all `fields` have defaults."
    )


class Review(Definition):
    """A question to a person, and what the answer can be."""

    question: Text = Field(description="The question (a template); `review` may be this text alone.")
    show: Text | None = Field(default=None, description="What a person sees with the question (a template).")
    options: Items[Text] = optional((), "What a person chooses from; the choice is `steps.<id>.option`.")
    fields: Named[VariableName, dict[str, JsonValue]] = optional(
        {},
        "Values that a person gives: a JSON Schema for each. One with a `default` (a value, or templates that give it) "
        "may be left out.",
    )
    after: Nested[AfterSeconds | None] = optional(None, "The answer after a time limit; by default it waits.")

    @property
    def defaults(self) -> Mapping[str, Mapping[str, JsonValue]]:
        """The fields that have a default, each as a schema of nothing else."""
        return {name: {"default": each["default"]} for name, each in self.fields.items() if "default" in each}

    @model_validator(mode="after")
    def _check_answers(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise WrongKey("options: each must be given once", "options")
        if taken := sorted(RESERVED_FIELDS & self.fields.keys()):
            raise WrongKey(f"{taken[0]} is what every answer has; choose another name", "fields", taken[0])
        if self.after is None:
            return self
        known = ("reject", *self.options, *(("approve",) if self.fields and not self.options else ()))
        answer, missing = self.after.answer, [name for name in self.fields if name not in self.defaults]
        if answer not in known:
            raise WrongKey(f"answer: give one of {', '.join(known)}", "after", "answer")
        if answer != "reject" and missing:
            raise WrongKey(f"answer: {answer} needs a default of the field {missing[0]}", "after", "answer")
        return self


class Step(Definition):
    """What steps of every kind have."""

    kind: ClassVar[str] = ""
    """The key that says what the step does."""

    id: Name = Field(description="The step's name; by default the role, check or flow that it names.")
    title: Text | None = Field(
        default=None, description="What people call the step or, with `for_each`, each of its items (a template)."
    )
    for_each: Takes[Annotated[ForEach, ShortFor("items")] | None, str | Sequence[object] | Keys | ForEach | None] = (
        optional(None, "A list or a template of one, or the keys of a fan-out: the step runs once per item.")
    )
    limits: Takes[StepLimits, Keys] = optional(StepLimits(), "Deadlines, and how often the step may run.")
    retry: Nested[Retry | None] = optional(None, "Tries and pauses after a failure.")
    allow: Items[End] = optional(
        (),
        "Which ends the flow survives: `[bad]` a bad result, of a step that only measures; `[failed]` a failure; "
        "`[bad, failed]` both.",
    )
    set: Named[VariableName, JsonValue] = optional({}, "New values of run variables after the step (templates).")
    next: Items[RouteSpec] = optional(
        (), "Where to go: the first entry whose `when` is true, otherwise the following step."
    )
    state: StateName | None = Field(default=None, description="The run's state from this step on.")

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        """``id`` is only required where nothing else names the step."""
        reference = super().__get_pydantic_json_schema__(core, handler)
        schema = handler.resolve_ref_schema(reference)
        given = schema["properties"]["id"]
        schema["properties"]["id"] = {"description": given.pop("description"), "anyOf": [given, NULL]}
        schema["required"] = [cls.kind]
        schema["anyOf"] = [{"required": ["id"], "properties": {"id": {"not": NULL}}}, *cls._named_by_kind()]
        return reference

    @classmethod
    def _named_by_kind(cls) -> Sequence[dict[str, Any]]:
        """The JSON Schemas of steps that need no ``id``."""
        return [{"properties": {"id": NULL}}]

    @model_validator(mode="before")
    @classmethod
    def _check_kind(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        if given.get("place") is not None:
            raise WrongKey(PLACE_ENDED, "place")
        kinds = _kinds_of(given)
        if len(kinds) != 1:
            raise WrongKey(f"give exactly one of {', '.join(STEP_KINDS)}", *kinds[1:2])
        others = {key for each in STEP_KINDS.values() for key in each.known_keys()} - cls.known_keys()
        given = {key: each for key, each in given.items() if each is not None or key not in others}
        for key in given:
            _check_kind_of_key(cls, key, lambda kind: kind, key)
        for key in limits if isinstance(limits := given.get("limits"), Mapping) else ():
            _check_kind_of_key(cls, key, lambda kind: type(kind.model_fields["limits"].default), "limits", key)
        return given if given.get("id") is not None else {**given, "id": cls._default_id(given)}

    @classmethod
    def _default_id(cls, given: Mapping[str, object]) -> object:
        return named if isinstance(named := given.get(cls.kind), str) else UNNAMED

    def template(self, name: str) -> Any:  # noqa: ANN401 - the author's choice
        """The step's template of that name: a key of `TEMPLATES`; None if it has none."""
        found: Any = self
        for key in TEMPLATES[name]:
            found = getattr(found, {"with": "with_", "fields": "defaults"}.get(key, key), None)
        return found

    @property
    def asked(self) -> tuple[str, ...]:
        """The roles that the step may ask; `EVERY_ROLE` for all of the catalog."""
        return ()

    @property
    def items_are_roles(self) -> bool:
        """Whether an item only names the role that it asks, as those of a list of roles."""
        return False

    @property
    def asks_at_once(self) -> bool:
        """Whether each item asks the role that it names."""
        return False

    def asking(self, role: str) -> Self:
        """The step of one item, which asks this one of its ``roles``."""
        return self.model_copy(update={"ask": role, "roles": ()})


def _check_kind_of_key(own: type[Step], key: str, having: Callable[[type[Step]], type[Definition]], *path: str) -> None:
    """Raise `WrongKey` for a key that steps of another kind have: in what they are ``having``."""
    owners = [kind for kind, each in STEP_KINDS.items() if key in having(each).known_keys()]
    if owners and key not in having(own).known_keys():
        raise WrongKey(f"{key} belongs to {' or '.join(owners)}", *path)


class IsolatedStep(Step):
    """A step that can do its work in a copy of the workspace."""

    isolate: Takes[Isolated | None, Keys | Literal["worktree"] | Isolate | None] = optional(
        None, "`worktree`, or its keys: the work is done in a git worktree (elsewhere a copy) of the workspace."
    )

    @model_validator(mode="after")
    def _check_merge(self) -> Self:
        is_won = self.for_each is not None and self.for_each.until is not None
        if is_won and self.isolate is not None and self.isolate.merge != "none":
            problem = "until with isolate requires merge: none; a check merge merges the result that counts"
            raise WrongKey(problem, "for_each", "until")
        return self


class _NoAsk:
    """What steps of another kind have for the keys of an ask; so do those below for theirs."""

    ask: ClassVar[None] = None
    roles: ClassVar[tuple[str, ...]] = ()
    prompt: ClassVar[None] = None
    prompt_replaces: ClassVar[bool] = False
    reply: ClassVar[None] = None


class _NoCheck:
    check: ClassVar[None] = None


class _NoReview:
    review: ClassVar[None] = None


class _NoCall:
    call: ClassVar[None] = None


class _NotIsolated:
    isolate: ClassVar[None] = None


class AskStep(_NoCheck, _NoReview, _NoCall, IsolatedStep):
    """Ask a role: a turn. ``*`` asks the roles in the order of the catalog's ``dependencies()``."""

    kind: ClassVar[str] = "ask"

    ask: Takes[Text, Text | Sequence[str]] = Field(
        description="A role to ask, `*` for every role of the catalog, a list of roles to ask at once, or a template "
        "of `roles`."
    )
    with_: Named[str, JsonValue] = optional({}, "What the role gets instead of the previous answer.")
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
    limits: Takes[TurnLimits, Keys] = optional(TurnLimits(), "Deadlines, and how often the step may run.")

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        reference = super().__get_pydantic_json_schema__(core, handler)
        schema = handler.resolve_ref_schema(reference)
        one = {"type": "string", "minLength": 1}
        several = {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}
        about = schema["properties"]["ask"]["description"]
        schema["properties"]["ask"] = {"description": about, "anyOf": [one, several]}
        chosen = {"required": ["roles", "for_each"], **_has(roles={"type": "array", "minItems": 1})}
        schema["allOf"] = [
            {"if": _has(ask=_LIST), "then": _has(for_each={"not": {"type": ["array", "string"]}}, roles=NULL)},
            {"if": _has(ask=_TEMPLATE), "then": chosen, "else": _has(roles={"maxItems": 0})},
        ]
        return reference

    @classmethod
    def _named_by_kind(cls) -> Sequence[dict[str, Any]]:
        return [_has(ask={"not": {"anyOf": [{"const": EVERY_ROLE}, _TEMPLATE, _LIST]}})]

    @classmethod
    def _default_id(cls, given: Mapping[str, object]) -> object:
        if given.get("ask") == EVERY_ROLE:
            raise WrongKey('a step that asks "*" needs an id', "ask")
        return super()._default_id(given)

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
        if data.get("roles") is not None:
            raise WrongKey("roles does not go with a list of roles", "roles")
        names, given = [*asked], data.get("for_each") or {}
        if not isinstance(given, Mapping):
            raise WrongKey("for_each does not go with a list of roles, which gives its items", "for_each")
        if stray := [key for key in NOT_BESIDE_LISTS if given.get(key) is not None]:
            raise WrongKey(f"{stray[0]} does not go with a list of roles", "for_each", stray[0])
        fan_out = {"concurrency": len(names), **given, "items": names}
        return {**data, "ask": ROLE_ITEM, "roles": names, "for_each": fan_out}

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        is_template = "{{" in self.ask
        if is_template and not self.roles:
            raise WrongKey("ask: a template needs roles, the list that it chooses from", "ask")
        if self.roles and not is_template:
            raise WrongKey("roles belongs to a template in ask", "roles")
        if self.roles and self.for_each is None:
            raise WrongKey("ask: a template chooses the role of an item, so it needs for_each", "ask")
        return self

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        for key in ("for_each", "isolate"):
            if self.ask == EVERY_ROLE and getattr(self, key) is not None:
                raise WrongKey(f'{key} goes with one role, not with "*"', key)
        if self.prompt_replaces and self.prompt is None:
            raise WrongKey("prompt_replaces needs a prompt to send instead", "prompt_replaces")
        return self

    @property
    def asked(self) -> tuple[str, ...]:
        return self.roles or (self.ask,)

    @property
    def asks_at_once(self) -> bool:
        return self.ask == ROLE_ITEM and self.for_each is not None and self.for_each.items == [*self.roles]

    @property
    def items_are_roles(self) -> bool:
        return self.ask in (ROLE_ITEM, f"{{{{ {self.for_each.as_ if self.for_each is not None else ''} }}}}")


class CheckStep(_NoAsk, _NoReview, _NoCall, _NotIsolated, Step):
    """Run a check."""

    kind: ClassVar[str] = "check"

    check: Text = Field(description="A check to run.")
    with_: Named[str, JsonValue] = optional({}, "The check's options.")
    once: StrictBool = Field(
        default=False, description="It may not be repeated after a kill: a person is asked first (exit code 4)."
    )


class ReviewStep(_NoAsk, _NoCheck, _NoCall, _NotIsolated, Step):
    """Ask a person."""

    kind: ClassVar[str] = "review"
    with_: ClassVar[Mapping[str, JsonValue]] = {}

    review: Takes[Annotated[Review, ShortFor("question")], str | Keys | Review] = Field(
        description="A question to a person (a template), or the keys of one."
    )

    @classmethod
    def _named_by_kind(cls) -> Sequence[dict[str, Any]]:
        return []

    @classmethod
    def _default_id(cls, given: Mapping[str, object]) -> object:
        raise WrongKey("a review needs an id", "review")

    @model_validator(mode="after")
    def _check_allowed(self) -> Self:
        if self.allow == ("bad",):
            raise WrongKey("allow: [bad] does not go with review: a rejection is for `next` to route on", "allow")
        return self


class CallStep(_NoAsk, _NoCheck, _NoReview, IsolatedStep):
    """Call another flow."""

    kind: ClassVar[str] = "call"

    call: Text = Field(description="A flow to call.")
    with_: Named[str, JsonValue] = optional({}, "The called flow's inputs.")
    limits: Takes[CallLimits, Keys] = optional(CallLimits(), "Deadlines, and how often and how deep the flow may run.")


StepSpec = AskStep | CheckStep | ReviewStep | CallStep
STEP_KINDS: dict[str, type[Step]] = {
    "ask": AskStep,
    "check": CheckStep,
    "review": ReviewStep,
    "call": CallStep,
}
"""The keys that say what a step does, exactly one per step."""


def _kinds_of(given: Mapping[str, object]) -> list[str]:
    """The keys of kinds that are given, or else that one is misspelt as."""
    kinds = [kind for kind in STEP_KINDS if given.get(kind) is not None]
    return kinds or [kind for key in given for kind in find_nearest(str(key), STEP_KINDS)]


def _kind_of(given: object) -> str:
    """The name of the class that a step is; of any if it has no kind, which that class reports."""
    if isinstance(given, Step):
        return STEP_KINDS[given.kind].__name__
    kinds = _kinds_of(given) if isinstance(given, Mapping) else []
    return STEP_KINDS[kinds[0] if kinds else "check"].__name__


if TYPE_CHECKING:
    WrittenStep = StepSpec
else:
    _TAGGED = (Annotated[each, Tag(each.__name__)] for each in STEP_KINDS.values())
    WrittenStep = Annotated[reduce(or_, _TAGGED), Discriminator(_kind_of)]
"""A step as it is read."""
_TEMPLATE: dict[str, Any] = {"type": "string", "pattern": r"\{\{"}
_LIST: dict[str, Any] = {"type": "array"}


def _has(**properties: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"properties": properties}
