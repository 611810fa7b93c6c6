"""Python: symbols and imports by ``ast``, in one pass.

Not by grimp: it wants a package that can be found on ``sys.path``, which a folder in a workspace is not, knows no loose
scripts, and tells no symbols, for which each file would have to be parsed once more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from codex_multi_role.checks.code_graph.symbols import Connections, Import, Symbols
from codex_multi_role.python_source import NotPython, syntax_tree

_TYPES_ONLY = "TYPE_CHECKING"
_SOURCE_FOLDER = "src"


def read_python(text: str) -> Symbols:
    """Symbols of a module. What is imported for type checkers only is no dependency: it makes circles that are none."""
    try:
        body = syntax_tree(text).body
    except NotPython as error:
        return Symbols(problem=str(error))
    symbols = Symbols()
    _Reader(symbols).read(body, "")
    return symbols


class _Reader:
    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def read(self, body: Iterable[ast.stmt], owner: str, *, defines: bool = True) -> None:
        """Take in the statements of a block; ``owner`` is ``Class.`` in a class. A function's body defines nothing."""
        for statement in body:
            match statement:
                case ast.Import(names=names):
                    self._import(defines, *(Import(each.name) for each in names))
                case ast.ImportFrom(module=module, names=names, level=level):
                    self._import(defines, Import(module or "", tuple(each.name for each in names), level))
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if defines:
                        self._symbols.functions.append(owner + name)
                    self.read(statement.body, "", defines=False)
                case ast.ClassDef(name=name, body=inner):
                    if defines:
                        self._symbols.classes.append(owner + name)
                    self.read(inner, f"{owner}{name}.", defines=defines)
                case ast.Assign() | ast.AnnAssign() if defines:
                    self._symbols.constants += [owner + name for name in _assigned(statement)]
                case ast.If(test=test, orelse=orelse) if _is_for_types(test):
                    self.read(orelse, owner, defines=defines)
                case _:
                    for block in _blocks(statement):
                        self.read(block, owner, defines=defines)

    def _import(self, at_once: bool, *imported: Import) -> None:
        known = self._symbols.imports if at_once else self._symbols.deferred
        known += imported


def _assigned(statement: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from (part.id for part in parts if isinstance(part, ast.Name))


def _is_for_types(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == _TYPES_ONLY) or (
        isinstance(test, ast.Attribute) and test.attr == _TYPES_ONLY
    )


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


class PythonModules:
    """Which file an import means. ``folder`` is the name of the folder, which may be a package itself."""

    def __init__(self, paths: Sequence[str], folder: str) -> None:
        self._known = {*paths}
        self._folder = folder
        self._file_of: dict[str, str] = {}
        for path in sorted(paths, key=lambda each: each.endswith(".pyi")):
            for name in self._names(path):
                self._file_of.setdefault(name, path)

    def meant(self, path: str, imported: Import) -> tuple[set[str], set[str]]:
        """The files that ``path`` imports with it, and the top-level names outside the folder."""
        if imported.level:
            return self._relative(path, imported), set()
        found = self._find(imported.name, imported.names)
        if not found:
            # A script finds what lies beside it, and names it as if it were at the top.
            beside = ".".join(PurePosixPath(path).parent.parts)
            found = self._find(f"{beside}.{imported.name}", imported.names) if beside else set()
        return found - {path}, set() if found else {imported.name.partition(".")[0]}

    def _relative(self, path: str, imported: Import) -> set[str]:
        parents = PurePosixPath(path).parent.parts
        parents = parents[: len(parents) - imported.level + 1] if imported.level > 1 else parents
        base = ".".join((*parents, imported.name) if imported.name else parents)
        return self._find(base, imported.names) - {path}

    def _find(self, module: str, names: Iterable[str]) -> set[str]:
        """The submodules among ``names``; the module itself where something else is taken from it."""
        below = {name: self._file_of.get(f"{module}.{name}" if module else name) for name in names}
        found = {file for file in below.values() if file}
        whole = self._file_of.get(module)
        if whole and (not below or None in below.values()):
            found.add(whole)
        return found

    def _names(self, path: str) -> Iterator[str]:
        """Every name it may go by: below the folder, below ``src``, and with the folder's own if that is a package."""
        parts = PurePosixPath(path).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        yield ".".join(parts)
        if parts[:1] == (_SOURCE_FOLDER,):
            yield ".".join(parts[1:])
        if "__init__.py" in self._known:
            yield ".".join((self._folder, *parts))


def connect_modules(modules: Mapping[str, Symbols], folder: str) -> Connections:
    """Who imports whom. ``folder`` is the name of the folder that the paths are relative to."""
    index = PythonModules(list(modules), folder)
    found = Connections()
    for path, symbols in modules.items():
        for kind, imports in ((found.dependencies, symbols.imports), (found.deferred, symbols.deferred)):
            meant = [index.meant(path, imported) for imported in imports]
            kind[path] = set[str]().union(*(inside for inside, _ in meant))
            found.outside.update(*(foreign for _, foreign in meant))
        found.deferred[path] -= found.dependencies[path]
    return found
