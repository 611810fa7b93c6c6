"""Layers of a dependency graph, its diagram, and batches of files by layers or by a planner's groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

import networkx

BATCH = 3
MOST_NODES = 60
"""A graph of more files is drawn by folders, and one of more folders only in part."""

Dependencies = Mapping[str, Set[str]]
MOST_IN_A_GROUP = 6
"""A batch is read in one turn; a larger group is split."""


def layers_of(dependencies: Dependencies) -> tuple[list[list[str]], list[list[str]]]:
    """The layers, the first without dependencies, and the cycles of more than one file, everything sorted."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(dependencies)
    graph.add_edges_from((needed, path) for path, needs in dependencies.items() for needed in needs)
    condensed = networkx.condensation(graph)
    members = {node: sorted(condensed.nodes[node]["members"]) for node in condensed}
    generations = networkx.topological_generations(condensed)
    layers = [sorted(path for node in generation for path in members[node]) for generation in generations]
    return layers, sorted(circle for circle in members.values() if len(circle) > 1)


def batches_of(layers: Sequence[Sequence[str]], size: int = BATCH) -> list[list[str]]:
    """The files of each layer, at most ``size`` at a time."""
    return [list(layer[start : start + size]) for layer in layers for start in range(0, len(layer), size)]


def drawn(dependencies: Dependencies) -> tuple[str, str]:
    """A Mermaid flowchart, and what its nodes are: ``files``, or ``folders`` if there are too many files."""
    if len(dependencies) <= MOST_NODES:
        return _flowchart(dependencies), "files"
    folders: dict[str, set[str]] = {}
    for path, needs in dependencies.items():
        folder = _folder(path)
        folders.setdefault(folder, set()).update(_folder(each) for each in needs if _folder(each) != folder)
    most = {name: folders[name] for name in sorted(folders)[:MOST_NODES]}
    return _flowchart({name: {*needs} & most.keys() for name, needs in most.items()}), "folders"


def _folder(path: str) -> str:
    return PurePosixPath(path).parent.as_posix()


def _flowchart(dependencies: Dependencies) -> str:
    ids = {path: f"n{number}" for number, path in enumerate(sorted(dependencies), 1)}
    nodes = [f'    {ids[path]}["{_label(path)}"]' for path in ids]
    arrows = [f"    {ids[path]} --> {ids[needed]}" for path in ids for needed in sorted(dependencies[path])]
    return "\n".join(["flowchart TD", *nodes, *arrows])


def _label(path: str) -> str:
    """Escape a label by Mermaid's own entities, its only escapes."""
    return path.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")


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
        return "not a list of paths"
    if unknown := [path for path in given if path not in wanted]:
        return f"{unknown[0]} is not one of the files to document"
    if len({*given}) < len(given) or {*given} & {*taken}:
        return "one of its files is already in another group"
    return ""


def in_order(grouping: Grouping, files: Mapping[str, Mapping[str, Any]]) -> list[dict[str, object]]:
    """The batches with ids, lowest layers first; each ``needs`` those before it that it depends on.

    Batches may depend on each other both ways, as cycles of files do: then the later one waits for the earlier.
    """
    ordered = sorted(grouping.batches, key=lambda paths: (max(files[path]["layer"] for path in paths), paths))
    batch_of = {path: number for number, paths in enumerate(ordered) for path in paths}
    batches: list[dict[str, object]] = []
    for number, paths in enumerate(ordered):
        told = [{name: files[path][name] for name in ("path", "sha256", "dependencies")} for path in paths]
        needed = {batch_of.get(each, number) for path in paths for each in files[path]["dependencies"]}
        needs = [f"B{each + 1}" for each in sorted(needed) if each < number]
        batches.append({"id": f"B{number + 1}", "files": told, "needs": needs})
    return batches
