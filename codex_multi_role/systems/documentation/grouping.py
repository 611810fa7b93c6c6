"""Batches of files: by the layers of the graph, or by groups that a planner proposes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from codex_multi_role.systems.documentation.code_graph.layers import BATCH, batches_of

MOST_IN_A_GROUP = 6
"""A batch is read in one turn; a larger group is split."""


@dataclass
class Grouping:
    """``batches`` of paths. ``dropped``: unusable groups, and why; ``put_back``: files that are in no group."""

    batches: list[list[str]]
    grouped_by: Literal["layers", "groups"] = "layers"
    dropped: list[dict[str, object]] = field(default_factory=list)
    put_back: list[str] = field(default_factory=list)


def group(layers: Sequence[Sequence[str]], wanted: Collection[str], groups: Sequence[Any] | None) -> Grouping:
    """The ``wanted`` files in batches, by the layers if no group is usable."""
    wanted_layers = [[path for path in layer if path in wanted] for layer in layers]
    grouping = Grouping([])
    taken: set[str] = set()
    for each in groups or ():
        if problem := _problem(each, wanted, taken):
            grouping.dropped.append({"group": each, "reason": problem})
            continue
        taken.update(each)
        grouping.batches += [each[start : start + MOST_IN_A_GROUP] for start in range(0, len(each), MOST_IN_A_GROUP)]
    if not grouping.batches:
        return Grouping(batches_of(wanted_layers), dropped=grouping.dropped)
    grouping.grouped_by = "groups"
    grouping.put_back = [path for layer in wanted_layers for path in layer if path not in taken]
    grouping.batches += batches_of([[path for path in layer if path not in taken] for layer in wanted_layers], BATCH)
    return grouping


def _problem(given: Any, wanted: Collection[str], taken: Collection[str]) -> str:  # noqa: ANN401 - as a model wrote it
    if not isinstance(given, list) or not given or not all(isinstance(path, str) for path in given):
        return "it is no list of paths"
    if unknown := [path for path in given if path not in wanted]:
        return f"{unknown[0]} is no file that is to be documented"
    if len({*given}) < len(given) or {*given} & {*taken}:
        return "a file of it is in a group already"
    return ""


def in_order(grouping: Grouping, files: Mapping[str, Mapping[str, Any]]) -> list[dict[str, object]]:
    """The batches with ids, lowest layers first; each ``needs`` those before it that it depends on.

    Batches may depend on each other both ways, as cycles of files do: then the later one waits for the earlier.
    """
    ordered = sorted(grouping.batches, key=lambda paths: (max(files[path]["layer"] for path in paths), paths))
    batch_of = {path: number for number, paths in enumerate(ordered) for path in paths}
    return [
        {
            "id": f"B{number + 1}",
            "files": [{name: files[path][name] for name in ("path", "sha256", "dependencies")} for path in paths],
            "needs": [
                f"B{needed + 1}"
                for needed in sorted(
                    {batch_of.get(each, number) for path in paths for each in files[path]["dependencies"]}
                )
                if needed < number
            ],
        }
        for number, paths in enumerate(ordered)
    ]
