"""The figures of the house, counted from its source, and the ceilings that hold them.

A figure that falls lowers its ceiling in the same change, so that nothing comes back unseen; lines and statements are
rounded up to the next hundred. A ceiling rises only where the drawing of the house permits it, and the change says why.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

TOP = Path(__file__).parents[1]
PACKAGE = "codex_multi_role"
EXTENSIONS = f"{PACKAGE}.extensions"
HEADING = "| figure | at most | to reach |"
Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Figure:
    """``ceiling``: what it is now; ``to_reach``: what the drawing wants, empty if it wants nothing else."""

    what: str
    ceiling: int
    to_reach: str = ""

    def allows(self, counted: int) -> bool:
        step = 100 if self.ceiling >= 10_000 else 1
        return -(-counted // step) * step == self.ceiling


# Debts of 2026-11-29. Contracts: templates are read by evaluating them, not from their syntax, 900 lines; verdicts on
# untidy suites, 700, a third of which tells what the sandbox denied and runs the tests in `doctor`; tests beside the
# first turns, 130; what a record names is data, 180, and settings of others need a word, 260; load errors at the line
# of the key, 250. They end with what nobody needs, the extensions `measuring` and `setup`, and the one reader.
FIGURES = (
    Figure("folders of the core", 16, "16"),
    Figure("floors of the core", 9, "9"),
    Figure("modules of the core", 297, "290, later 310"),
    Figure("lines of the core", 46_100, "38,000, later 41,000"),
    Figure("statements of the core", 29_600),
    Figure("modules of the package", 510, "495, later free"),
    Figure("lines of the package", 72_700, "64,000, later free"),
    Figure("statements of the package", 46_800),
    Figure("lines of the tests", 77_900, "79,000"),
    Figure("names of extensions in the core", 0),
    Figure("imports that a rule excuses", 0),
    Figure("fields of the largest class", 35, "12"),
    Figure("imported names inside functions", 145, "150"),
    Figure("direct dependencies", 14, "14"),
    Figure("class names that stand twice", 0),
    Figure("modules that name `sys.executable`", 1),
)


def count() -> dict[str, int]:
    """Every figure of `FIGURES`, by its name. Rooms that import each other in a circle raise `graphlib.CycleError`."""
    texts = _texts()
    core = {name: text for name, text in texts.items() if not f"{name}.".startswith(f"{EXTENSIONS}.")}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    classes = [node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)]
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    return {
        "folders of the core": len({_room(name) for name in core if name.count(".") > 1}),
        "floors of the core": _floors(core),
        "modules of the core": len(core),
        "lines of the core": _lines(core.values()),
        "statements of the core": _statements(trees[name] for name in core),
        "modules of the package": len(texts),
        "lines of the package": _lines(texts.values()),
        "statements of the package": _statements(iter(trees.values())),
        "lines of the tests": _lines(file.read_text() for file in (TOP / "tests").rglob("*.py")),
        "names of extensions in the core": sum(EXTENSIONS in text for text in core.values()),
        "imports that a rule excuses": sum(
            len(each.get("ignore_imports", ())) for each in project["tool"]["importlinter"]["contracts"]
        ),
        "fields of the largest class": max(map(_fields, classes)),
        "imported names inside functions": sum(map(_late_imports, trees.values())),
        "direct dependencies": len(project["project"]["dependencies"]),
        "class names that stand twice": sum(n > 1 for n in Counter(each.name for each in classes).values()),
        "modules that name `sys.executable`": sum("sys.executable" in text for text in texts.values()),
    }


def with_figures(text: str) -> str:
    """``text``, as of the page on the house, with the table of figures as they are allowed now."""
    rows = (f"| {each.what} | {each.ceiling:,} | {each.to_reach} |" for each in FIGURES)
    table = "\n".join((HEADING, "|---|---|---|", *rows))
    return re.sub(rf"^{re.escape(HEADING)}\n(\|.*\n)*", lambda _: f"{table}\n", text, flags=re.MULTILINE)


@cache
def _texts() -> Mapping[str, str]:
    """The source of each module by its dotted name."""
    files = (TOP / PACKAGE).rglob("*.py")
    return {_dotted(file.relative_to(TOP)): file.read_text() for file in files}


def _dotted(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def _room(module: str) -> str:
    """A folder at the top of the package, or a loose module there."""
    return ".".join(module.split(".")[:2])


def _floors(core: Mapping[str, str]) -> int:
    """The rooms in the longest chain in which each imports the next."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    below: dict[str, set[str]] = {_room(name): set() for name in core}
    for name in core:
        below[_room(name)] |= {_room(each) for each in graph.find_modules_directly_imported_by(name)} & below.keys()
    heights: dict[str, int] = {}
    for room in TopologicalSorter({room: rooms - {room} for room, rooms in below.items()}).static_order():
        heights[room] = 1 + max((heights[each] for each in below[room] - {room}), default=0)
    return max(heights.values())


def _lines(texts: Iterable[str]) -> int:
    return sum(len(text.splitlines()) for text in texts)


def _statements(trees: Iterator[ast.Module]) -> int:
    return sum(isinstance(node, ast.stmt) for tree in trees for node in ast.walk(tree))


def _fields(node: ast.ClassDef) -> int:
    return sum(isinstance(each, ast.AnnAssign) for each in node.body)


def _late_imports(tree: ast.Module) -> int:
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, Functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return sum(len(node.names) for node in inside)
