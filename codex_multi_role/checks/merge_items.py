"""The check ``merge_items``: add new items to a list by key; refuse a duplicate key or unexpected fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, ResultPart, declare_check, no_time
from codex_multi_role.reading.json_types import Json

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
