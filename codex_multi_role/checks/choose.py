"""The check ``choose``: pick the best of several candidates by keys listed in order of importance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.reading.json_types import Json

MAX_SHOWN_CHARACTERS = 60
NOT_DONE = ("failed", "skipped")
"""The status of an item of a fan-out that has no result."""
_MISSING = object()

Candidate = Mapping[str, JsonValue]
KeyPath = Annotated[str, StringConstraints(pattern=r"^[^.]+(\.[^.]+)*$")]
# (group, value): smaller groups rank first. None: the value cannot be compared.
Comparable = tuple[int, float | bool | str] | None


def _words(prefer: object) -> object:
    """Restore a bare ``true``, which YAML reads as a boolean, to the word."""
    return str(prefer).lower() if isinstance(prefer, bool) else prefer


def _mapping(requirement: object) -> object:
    return {"key": requirement} if isinstance(requirement, str) else requirement


class Criterion(CheckOptions):
    """A key to compare by: a dotted path into the candidate, and which of its values is better."""

    key: KeyPath
    prefer: Annotated[Literal["highest", "lowest", "true", "false"], BeforeValidator(_words)]


class Requirement(CheckOptions):
    """A key that must be truthy, or equal to ``equals``; a boolean never equals a number."""

    key: KeyPath
    equals: JsonValue = None


class ChooseOptions(CheckOptions):
    """A text in ``require`` is short for ``{key: <text>}``."""

    candidates: list[dict[str, JsonValue]] = Field(
        description='a list of mappings, such as "{{ steps.<fan-out>.results }}"'
    )
    by: list[Criterion] = Field(min_length=1, description="a list such as [{key: coverage, prefer: highest}]")
    require: list[Annotated[Requirement, BeforeValidator(_mapping)]] = Field(
        default=[], description="a list of keys, or of mappings such as {key: exit_code, equals: 0}"
    )


class Rejected(ResultPart):
    index: int
    reason: str


class Incomparable(ResultPart):
    index: int
    key: str
    reason: str


class ChooseResult(CheckResult):
    """``status`` is ``none`` if no candidate is left; ``index`` and ``winner`` are null then.

    ``ranking``: the indices of the compared candidates, best first. ``tied``: if there is a ``tie``, the indices of all
    that are as good as the winner, which is the first of them.
    """

    bad = ("none",)

    status: Literal["chosen", "none"]
    index: int | None
    winner: Json | None
    reason: str
    tie: bool
    tied: list[int]
    ranking: list[int]
    rejected: list[Rejected]
    incomparable: list[Incomparable]


@declare_check(options=ChooseOptions, result=ChooseResult, max_seconds=no_time, read_only=True)
def choose_best(context: CheckContext) -> ChooseResult:
    """Choose the best candidate; write ``result.json``.

    Options: `ChooseOptions`. A candidate is rejected if its ``status`` is ``failed`` or ``skipped`` (an item of a
    fan-out without a result) or if it does not meet a requirement. The others are compared by the first key of
    ``by``, ties by the second, and so on. ``highest`` and ``lowest`` compare numbers with numbers, booleans with
    booleans (true is higher) and texts with texts, and rank numbers before booleans before texts. ``true`` and
    ``false`` compare booleans only. Missing and incomparable values rank last. Raises UsageError for a wrong option,
    StorageError.
    """
    options = context.read_options(ChooseOptions, "choose")
    return choose(options.candidates, options.by, options.require)


def choose(
    candidates: Sequence[Candidate], by: Sequence[Criterion], require: Sequence[Requirement] = ()
) -> ChooseResult:
    """The result of `choose_best` for these options."""
    refusals = [(index, _refusal(candidate, require)) for index, candidate in enumerate(candidates)]
    left = [index for index, refusal in refusals if not refusal]
    places = _places([candidates[index] for index in left], by)
    place_of = dict(zip(left, places, strict=True))
    ranking = sorted(left, key=lambda index: (place_of[index], index))
    tied = [index for index in ranking if place_of[index] == place_of[ranking[0]]]
    return ChooseResult(
        status="chosen" if ranking else "none",
        index=ranking[0] if ranking else None,
        winner=dict(candidates[ranking[0]]) if ranking else None,
        reason=_reason(candidates, by, ranking, place_of),
        tie=len(tied) > 1,
        tied=tied if len(tied) > 1 else [],
        ranking=ranking,
        rejected=[Rejected(index=index, reason=refusal) for index, refusal in refusals if refusal],
        incomparable=[note for index in left for note in _incomparable(index, candidates[index], by)],
    )


def _refusal(candidate: Candidate, require: Sequence[Requirement]) -> str:
    """Why the candidate is rejected, or an empty text."""
    if candidate.get("status") in NOT_DONE:
        return str(candidate.get("error") or f"its status is {candidate['status']}")
    for requirement in require:
        value = _value(candidate, requirement.key)
        if value is _MISSING:
            return f"{requirement.key} is missing"
        if "equals" not in requirement.model_fields_set:
            if not value:
                return f"{requirement.key} is {_shown(value)}"
        elif not _equal(value, requirement.equals):
            return f"{requirement.key} is {_shown(value)}, not {_shown(requirement.equals)}"
    return ""


def _places(candidates: Sequence[Candidate], by: Sequence[Criterion]) -> list[tuple[int, ...]]:
    """Each candidate's place in every criterion (0 is best, equal values share a place): the smallest tuple wins."""
    columns = []
    for criterion in by:
        values = [_comparable(candidate, criterion) for candidate in candidates]
        order = _ordered({value for value in values if value is not None}, criterion)
        place = {value: position for position, value in enumerate(order)}
        columns.append([len(place) if value is None else place[value] for value in values])
    return list(zip(*columns, strict=True))


def _ordered(values: set[tuple[int, float | bool | str]], criterion: Criterion) -> list[Comparable]:
    best_is_largest = criterion.prefer in ("highest", "true")
    groups = [[value for value in values if value[0] == group] for group in range(3)]
    return [value for group in groups for value in sorted(group, key=lambda pair: pair[1], reverse=best_is_largest)]


def _comparable(candidate: Candidate, criterion: Criterion) -> Comparable:
    value = _value(candidate, criterion.key)
    if isinstance(value, bool):
        return 1, value
    if criterion.prefer in ("true", "false"):
        return None
    if isinstance(value, int) or (isinstance(value, float) and not math.isnan(value)):
        return 0, value
    return (2, value) if isinstance(value, str) else None


def _incomparable(index: int, candidate: Candidate, by: Sequence[Criterion]) -> list[Incomparable]:
    found = []
    for criterion in by:
        if _comparable(candidate, criterion) is None:
            value = _value(candidate, criterion.key)
            reason = "is missing" if value is _MISSING else f"{_shown(value)} cannot be compared"
            found.append(Incomparable(index=index, key=criterion.key, reason=reason))
    return found


def _reason(
    candidates: Sequence[Candidate],
    by: Sequence[Criterion],
    ranking: Sequence[int],
    place_of: Mapping[int, tuple[int, ...]],
) -> str:
    """Why the first of ``ranking`` won: the criterion that sets it apart from the second."""
    if not ranking:
        return "every candidate was rejected" if candidates else "there are no candidates"
    if len(ranking) == 1:
        return "the only candidate" if len(candidates) == 1 else "the only candidate that was not rejected"
    best, second = ranking[:2]
    for criterion, own, other in zip(by, place_of[best], place_of[second], strict=True):
        if own != other:
            shown = [_shown(_value(candidates[index], criterion.key)) for index in (best, second)]
            return f"{criterion.key} is {shown[0]}, the next best has {shown[1]} ({criterion.prefer} wins)"
    return "equal in every key to the next best: the first one wins"


def _value(candidate: Candidate, path: str) -> object:
    """The value at the dotted ``path``, or `_MISSING`."""
    value: object = candidate
    for key in path.split("."):
        value = value.get(key, _MISSING) if isinstance(value, Mapping) else _MISSING
    return value


def _equal(value: object, expected: object) -> bool:
    return isinstance(value, bool) == isinstance(expected, bool) and value == expected


def _shown(value: object) -> str:
    if value is _MISSING:
        return "none"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
