"""Checks that merge: ``merge`` copies into the workspace, in order, ``merge_items`` new items into a list, by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.json_types import Json


class MergeOptions(CheckOptions):
    """A copy is the ``copy`` of a result of a step with ``isolate`` and ``merge: none``."""

    copies: list[str] = Field(min_length=1, description="a list of copies, as results name them")


class MergeConflict(ResultPart):
    path: str
    kind: str


class MergedCopies(CheckResult):
    bad = ("conflicts",)

    status: Literal["merged", "unchanged", "conflicts"]
    paths: list[str]
    conflicts: list[MergeConflict]


class MergedCopy(MergedCopies):
    copy_: str = Field(alias="copy")


class MergeCheckResult(MergedCopies):
    """All copies together, with ``conflicts`` if any copy has one; ``merges`` has each copy."""

    merges: list[MergedCopy]


@declare_check(options=MergeOptions, result=MergeCheckResult, max_seconds=no_time)
def merge_copies(context: CheckContext) -> MergeCheckResult:
    """Merge each copy, and write ``result.json``. Raises UsageError for a copy that the run did not make."""
    options = context.read_options(MergeOptions, "merge")
    if context.worktrees is None:
        raise UsageError("the check merge has no copies of the workspace to merge")
    merges = [MergedCopy(copy=key, **context.worktrees.merge(key).as_json()) for key in options.copies]
    statuses = {merge.status for merge in merges}
    return MergeCheckResult(
        status=next((each for each in ("conflicts", "merged") if each in statuses), "unchanged"),
        paths=sorted({path for merge in merges for path in merge.paths}),
        conflicts=[conflict for merge in merges for conflict in merge.conflicts],
        merges=merges,
    )


Name = Annotated[str, StringConstraints(min_length=1)]


class MergeItemsOptions(CheckOptions):
    """``fields``: exactly the fields that an item must have; if empty, it may have any."""

    known: list[dict[str, JsonValue]] = Field(description="the list so far, of mappings")
    new: list[JsonValue] = Field(description="the items to add")
    key: Name = Field(default="id", description="the field that identifies an item")
    fields: list[Name] = Field(default=[], description="a list of names")


class RefusedItem(ResultPart):
    item: Any
    reason: str


class MergeItemsResult(CheckResult):
    """Known ``items`` come first, unchanged. ``added``: the keys of the others.

    ``status`` is ``refused`` if any item was; the others are still added.
    """

    bad = ()

    status: Literal["merged", "refused"]
    items: list[Json]
    added: list[str]
    refused: list[RefusedItem]


@declare_check(options=MergeItemsOptions, result=MergeItemsResult, max_seconds=no_time, read_only=True)
def merge_items(context: CheckContext) -> MergeItemsResult:
    """Add the new items; write ``result.json``. Raises UsageError for a wrong option."""
    options = context.read_options(MergeItemsOptions, "merge_items")
    items, refused = merged_items(options.known, options.new, options.key, options.fields)
    added = [str(item[options.key]) for item in items[len(options.known) :]]
    return MergeItemsResult(status="refused" if refused else "merged", items=items, added=added, refused=refused)


def merged_items(
    known: Sequence[Json], new: Sequence[JsonValue], key: str, fields: Sequence[str]
) -> tuple[list[Json], list[RefusedItem]]:
    """``known`` and the new items, and those that were refused. ``fields``: see `MergeItemsOptions`."""
    items, refused = list(known), []
    for item in new:
        if reason := _refusal(item, items, key, fields):
            refused.append(RefusedItem(item=item, reason=reason))
        else:
            items.append(item)  # type: ignore[arg-type]  # only mappings are left
    return items, refused


def _refusal(item: JsonValue, items: Sequence[Json], key: str, fields: Sequence[str]) -> str:
    if not isinstance(item, dict):
        return "is not a mapping"
    missing = [name for name in dict.fromkeys((key, *fields)) if name not in item]
    unknown = [name for name in item if fields and name not in (key, *fields)]
    if missing or unknown:
        reasons = [f"without {', '.join(missing)}"] if missing else []
        return " and ".join([*reasons, *([f"with an unknown {', '.join(unknown)}"] if unknown else [])])
    value = item[key]
    if not isinstance(value, str) or not value:
        return f"its {key} is not text"
    return f"the {key} {value} is taken" if any(each[key] == value for each in items) else ""
