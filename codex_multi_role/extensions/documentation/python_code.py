"""Python: symbols and imports by ``ast``, in one pass.

Not by grimp: it needs a package on ``sys.path``, which a folder in a workspace is not, ignores loose scripts, and
reports no symbols, for which each file would have to be parsed again.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import PurePosixPath

from codex_multi_role.extensions.documentation.discovery import Connections, Import, Symbols
from codex_multi_role.reading.python_source import NotPython, syntax_tree

_TYPES_ONLY = "TYPE_CHECKING"
_SOURCE_FOLDER = "src"
_INIT = "__init__"
Parts = tuple[str, ...]


def read_python(text: str) -> Symbols:
    """The symbols of a module. Imports for type checkers are not dependencies: they would make false cycles."""
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
        """Read the statements of a block; ``owner`` is ``Class.`` in a class. A function's body defines nothing."""
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
    return _TYPES_ONLY in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


class PythonModules:
    """Resolve imports to files. ``folder`` is the name of the folder, which may itself be a package.

    An import root is the closest folder around a module that is not a package. Packages can be imported from
    everywhere, as if they were installed, and so can the modules of the folder and of its ``src``; other modules, such
    as scripts and tests, only from their own root.
    """

    def __init__(self, paths: Sequence[str], folder: str) -> None:
        self._folder = folder
        self._packages = {PurePosixPath(path).parent.parts for path in paths if PurePosixPath(path).stem == _INIT}
        self._by_path: dict[str, str] = {}
        self._beside: dict[tuple[Parts, str], str] = {}
        self._anywhere: dict[str, list[str]] = {}
        for path in sorted(paths, key=lambda each: each.endswith(".pyi")):
            parts, root = _module(path), self._root(path)
            own = (folder, *parts) if root is None else parts[len(root) :]
            self._by_path.setdefault(".".join(parts), path)
            self._beside.setdefault((root or (), ".".join(own)), path)
            installed = root is None or PurePosixPath(path).parent.parts != root or root in ((), (_SOURCE_FOLDER,))
            names = {own} if root is None else {own, parts, parts[1:] if parts[:1] == (_SOURCE_FOLDER,) else parts}
            for name in names:
                if name and (installed or len(name) > 1):
                    self._anywhere.setdefault(".".join(name), []).append(path)

    def meant(self, path: str, imported: Import) -> tuple[set[str], set[str]]:
        """The files that ``path`` imports by ``imported``, and the top-level names from outside the folder."""
        if imported.level:
            return self._relative(path, imported), set()
        top = imported.name.partition(".")[0]
        found = set() if top in sys.stdlib_module_names else self._find(imported, partial(self._absolute, path))
        return found - {path}, set() if found else {top}

    def _relative(self, path: str, imported: Import) -> set[str]:
        parents = PurePosixPath(path).parent.parts
        parents = parents[: len(parents) - imported.level + 1] if imported.level > 1 else parents
        base = ".".join((*parents, imported.name) if imported.name else parents)
        return self._find(replace(imported, name=base), self._by_path.get) - {path}

    def _absolute(self, path: str, name: str) -> str | None:
        """The module ``name`` of the importer's own root, otherwise the closest one."""
        own = self._beside.get((self._root(path) or (), name))
        others = self._anywhere.get(name, [])
        return own or max(others, key=lambda each: _shared_folders(path, each), default=None)

    def _find(self, imported: Import, look_up: Callable[[str], str | None]) -> set[str]:
        """The submodules among its names, and the module itself if anything else is imported from it."""
        module = imported.name
        below = {name: look_up(f"{module}.{name}" if module else name) for name in imported.names}
        found = {file for file in below.values() if file}
        whole = look_up(module)
        if whole and (not below or None in below.values()):
            found.add(whole)
        return found

    def _root(self, path: str) -> Parts | None:
        """The import root of a module; None if it is above the folder, which is then a package."""
        root = PurePosixPath(path).parent.parts
        while root in self._packages:
            if not root:
                return None
            root = root[:-1]
        return root


def _shared_folders(one: str, other: str) -> int:
    pairs = zip(PurePosixPath(one).parts, PurePosixPath(other).parts, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _module(path: str) -> Parts:
    parts = PurePosixPath(path).with_suffix("").parts
    return parts[:-1] if parts[-1] == _INIT else parts


def connect_modules(modules: Mapping[str, Symbols], folder: str) -> Connections:
    """Resolve the imports of all modules. ``folder`` is the name of the folder that the paths are relative to."""
    index = PythonModules(list(modules), folder)
    found = Connections()
    for path, symbols in modules.items():
        for kind, imports in ((found.dependencies, symbols.imports), (found.deferred, symbols.deferred)):
            meant = [index.meant(path, imported) for imported in imports]
            kind[path] = set[str]().union(*(inside for inside, _ in meant))
            found.outside.update(*(foreign for _, foreign in meant))
        found.deferred[path] -= found.dependencies[path]
    return found
