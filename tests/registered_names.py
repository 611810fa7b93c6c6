"""What extensions register by name, and where the core says it, as a text or as a name in its own code.

python -m tests.registered_names      every place
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from codex_multi_role.option import options_in

TOP = Path(__file__).parents[1]
PACKAGE = TOP / "codex_multi_role"
EXTENSIONS = PACKAGE / "extensions"
GROUP = "codex_multi_role."
HINTS = f"{GROUP}hints"
"""Its names are what the core asks for."""
DATABASE = frozenset({"postgres", "postgresql", "libpq"})
OTHER_MEANINGS = {
    "annotations": "the types that a class declares",
    "apply": "to write the files that a role submits; to take an event in",
    "batch": "a filter of Jinja",
    "config": "of Codex and git",
    "coverage": "the package of the project whose tests run",
    "diff": "what git and Codex call a change",
    "flaky": "a test that does not say the same twice, beside the tests before a run",
    "init": "of git",
    "lines": "of a text",
    "new": "not there before",
    "plan": "the plan of a role",
    "report": "what a run, its tests or a check leave behind",
    "record": "what is written down: a line of events.jsonl, run.json",
    "schema": "a JSON Schema, and the check of one",
    "search": "in a text",
    "summary": "a field of every handoff",
}
"""What words that are also registered names mean in the core. As flags, and as commands, they count all the same."""


def places(core: Mapping[str, ast.Module]) -> list[str]:
    """``module:line: name`` of each registered name in these modules, and of each module of an extension."""
    return [f"{module}:{line}: {name}" for module, tree in core.items() for line, name in sorted(names_in(tree))]


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    nodes = [*ast.walk(tree)]
    comments = _comments(nodes)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments:
            told = [node.value] if node.value in _words() else _in_text().findall(node.value)
            yield from ((node.lineno, name) for name in told)
        for name in _identifiers(node):
            if not name.startswith("__") and name.lower().strip("_") in _words():
                yield getattr(node, "lineno", 0), name


def _comments(nodes: Iterable[ast.AST]) -> set[int]:
    """The strings that say something to readers of the code, except where ``--help`` prints them."""
    found = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return found - {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and any("command(" in ast.unparse(each) for each in node.decorator_list)
    }


def _identifiers(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
    return ()


@cache
def _words() -> frozenset[str]:
    """What extensions register, as it stands in code: names of parts, options, settings files, and their packages."""
    parts = {name for kind, group in _groups().items() if kind != HINTS for name in group}
    files = {part.settings.file for part in _parts("checks") if getattr(part, "settings", None)}
    options = {flag.removeprefix("--").replace("-", "_") for flag in _flags()}
    return frozenset({*parts, *files, *options, *_packages(), *DATABASE} - OTHER_MEANINGS.keys())


@cache
def _in_text() -> re.Pattern[str]:
    """What stands for itself within a longer text: flags, commands, words of the database, and names of two words."""
    commands = "|".join(map(re.escape, sorted(_groups().get(f"{GROUP}commands", ()))))
    exact = {each for each in _words() if re.search(r"[_.]", each)} | {*_flags()}
    others = "|".join(map(re.escape, sorted(exact - OTHER_MEANINGS.keys())))
    database = "|".join(map(re.escape, sorted((_packages() | DATABASE) - OTHER_MEANINGS.keys())))
    typed = rf"(?:(?<=codex-multi-role )|(?<=`))(?:{commands})(?=[ `\n])"
    return re.compile(rf"{typed}|(?<![\w-])(?:{others}|extensions\.\w+|(?i:{database}))(?![\w-])")


def _flags() -> Iterator[str]:
    for group in _parts("run_options"):
        yield from (each.flag for each in options_in(group).values())
    settings = [*(part.setting for part in _parts("runs"))]
    settings += [each for part in _parts("run_additions") for each in part.settings]
    yield from (flag for each in settings for flag in (*each.opts, *each.secondary_opts))


def _parts(kind: str) -> Iterator[Any]:
    return map(resolve_name, _groups().get(f"{GROUP}{kind}", {}).values())


@cache
def _groups() -> Mapping[str, Mapping[str, str]]:
    """The parts of extensions, ``module:name``, by group and name."""
    groups: Mapping[str, Mapping[str, str]] = tomllib.loads((TOP / "pyproject.toml").read_text())["project"][
        "entry-points"
    ]
    return groups


@cache
def _packages() -> frozenset[str]:
    """The packages that extensions import, and the core does not."""
    imported = re.compile(r"^ *(?:from (\w+)[\w.]* import |import (\w+)[\w., ]*(?:#.*)?$)", re.MULTILINE)
    of_core, of_extensions = set[str](), set[str]()
    for file in PACKAGE.rglob("*.py"):
        (of_extensions if EXTENSIONS in file.parents else of_core).update(*imported.findall(file.read_text()))
    return frozenset(of_extensions - of_core - sys.stdlib_module_names)


if __name__ == "__main__":
    from tests.house import core_trees

    sys.stdout.writelines(f"{each}\n" for each in places(core_trees()))
