"""Layers of a dependency graph, each file above its dependencies and a cycle as one node, and its diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import PurePosixPath

BATCH = 3
MOST_NODES = 60
"""A graph of more files is drawn by folders, and one of more folders only in part."""

Dependencies = Mapping[str, Set[str]]


def layers_of(dependencies: Dependencies) -> tuple[list[list[str]], list[list[str]]]:
    """The layers, the first without dependencies, and the cycles of more than one file, everything sorted."""
    import networkx

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
