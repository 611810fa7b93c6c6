"""The figures of the house, counted from its source, and the goals that hold them: those of the drawing of the house.

A figure above its goal is a debt, with a date and a reason: it may be at most what the debt says, and a debt that is
paid is deleted. A debt grows only if the change gives a new reason.
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

from tests import registered_names

TOP = Path(__file__).parents[1]
PACKAGE = "codex_multi_role"
EXTENSIONS = f"{PACKAGE}.extensions"
HEADING = "| figure | at most | debt | since | reason |"
CONTEXTS = frozenset({"Ask", "Copy", "FlowState", "RunServices", "RunSettings", "TurnPrompt"})
"""What code is given to work with."""
Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Debt:
    """A figure may be ``at_most`` that much above its goal, ``since`` that day, until ``reason`` is gone."""

    at_most: int
    since: str
    reason: str


@dataclass(frozen=True)
class Figure:
    what: str
    goal: int
    debt: Debt | None = None

    def problem(self, counted: int) -> str:
        """What is wrong with it; empty if nothing."""
        if self.debt is not None and counted <= self.goal:
            return f"{self.what}: {counted:,} is what the drawing wants: delete the debt"
        most = self.debt.at_most if self.debt is not None else self.goal
        return f"{self.what}: {counted:,} are more than {most:,}" if counted > most else ""


LINES = Debt(
    45_980,
    "2026-11-30",
    "a run has an address and a handle, and keywords are checked by name (550); the keys of a step are classes, and "
    "former ones load (540); a person decides on what changed, line by line, also at the terminal (330); a run is read "
    "as a tree of tasks (90); lists and errors that people read (130); each key is described where it is declared "
    "(60); keys, links and questions of all runs at the terminal (320); screens of any size without a "
    "broken word (100); variables have types (30); copies that a run uses are locked (25)",
)
FIGURES = (
    Figure("folders of the core", 16),
    Figure("floors of the core", 9),
    Figure("modules of the core", 295),
    Figure("lines of the core", 44_000, LINES),
    Figure("statements of the core", 28_200, Debt(29_660, "2026-11-30", "as its lines")),
    Figure(
        "lines of the package",
        70_500,
        Debt(
            76_570,
            "2026-11-30",
            "as the lines of the core; pages of decisions, comparisons and live runs (600), of very long runs, "
            "and changes in the report (200); test generation's oracle",
        ),
    ),
    Figure("statements of the package", 45_400, Debt(49_920, "2026-11-30", "as its lines")),
    Figure("lines of the tests", 79_000),
    Figure("lines of the extension machines", 7_500),
    Figure("lines of any other extension", 5_000),
    Figure(
        "names that extensions register, in the core",
        0,
        Debt(1, "2026-11-29", "`replay` is a name in the folder of a run, which no role has"),
    ),
    Figure("imports that a rule excuses", 0),
    Figure("fields of the largest class", 20),
    Figure(
        "fields of the largest context object",
        14,
        Debt(17, "2026-11-29", "`FlowState` and `Copy` are stored as they are"),
    ),
    Figure("imported names inside functions", 150),
    Figure("direct dependencies", 14),
    Figure("class names that stand twice", 0),
    Figure("modules that name `sys.executable`", 1),
)


def count() -> dict[str, int]:
    """Every figure of `FIGURES`, by its name. Rooms that import each other in a circle raise `graphlib.CycleError`."""
    texts = _texts()
    core = {name: texts[name] for name in core_trees()}
    trees = _trees()
    classes = [node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)]
    extensions = {folder.name: _lines(file.read_text() for file in folder.rglob("*.py")) for folder in _extensions()}
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    return {
        "folders of the core": len({_room(name) for name in core if name.count(".") > 1}),
        "floors of the core": _floors(core),
        "modules of the core": len(core),
        "lines of the core": _lines(core.values()),
        "statements of the core": _statements(trees[name] for name in core),
        "lines of the package": _lines(texts.values()),
        "statements of the package": _statements(iter(trees.values())),
        "lines of the tests": _lines(file.read_text() for file in (TOP / "tests").rglob("*.py")),
        "lines of the extension machines": extensions.pop("machines"),
        "lines of any other extension": max(extensions.values()),
        "names that extensions register, in the core": len(registered_names.places(core_trees())),
        "imports that a rule excuses": sum(
            len(each.get("ignore_imports", ())) for each in project["tool"]["importlinter"]["contracts"]
        ),
        "fields of the largest class": max(map(_fields, classes)),
        "fields of the largest context object": max(_fields(each) for each in classes if each.name in CONTEXTS),
        "imported names inside functions": sum(map(_late_imports, trees.values())),
        "direct dependencies": len(project["project"]["dependencies"]),
        "class names that stand twice": sum(n > 1 for n in Counter(each.name for each in classes).values()),
        "modules that name `sys.executable`": sum("sys.executable" in text for text in texts.values()),
    }


def core_trees() -> dict[str, ast.Module]:
    """The syntax tree of each module of the core by its dotted name."""
    return {name: tree for name, tree in _trees().items() if not f"{name}.".startswith(f"{EXTENSIONS}.")}


def with_figures(text: str) -> str:
    """``text``, as of the page on the house, with the table of figures as they are allowed now."""
    table = "\n".join((HEADING, "|---|---|---|---|---|", *map(_row, FIGURES)))
    return re.sub(rf"^{re.escape(HEADING)}\n(\|.*\n)*", lambda _: f"{table}\n", text, flags=re.MULTILINE)


def _row(figure: Figure) -> str:
    debt = figure.debt
    cells = (f"{debt.at_most:,}", debt.since, debt.reason) if debt else ("", "", "")
    return f"| {' | '.join((figure.what, f'{figure.goal:,}', *cells))} |"


def _extensions() -> list[Path]:
    return [file.parent for file in (TOP / EXTENSIONS.replace(".", "/")).glob("*/__init__.py")]


@cache
def _texts() -> Mapping[str, str]:
    """The source of each module by its dotted name."""
    files = (TOP / PACKAGE).rglob("*.py")
    return {_dotted(file.relative_to(TOP)): file.read_text() for file in files}


@cache
def _trees() -> Mapping[str, ast.Module]:
    return {name: ast.parse(text) for name, text in _texts().items()}


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
