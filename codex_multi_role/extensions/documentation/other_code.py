"""Other languages, through tree-sitter: symbols by the tags query of each grammar, imports by our own query."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codex_multi_role.errors import how_to_add
from codex_multi_role.extensions.documentation.discovery import LANGUAGE_OF, Connections, Import, Symbols

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

HOW_TO_INSTALL = f"no grammar is installed: {how_to_add('document')}"
_MODULES = "(import_statement source: (string) @i) (export_statement source: (string) @i)"
_REQUIRED = "(import_require_clause source: (string) @i)"
_CALLED = "(call_expression function: [(identifier) (import)] @f arguments: (arguments (string) @i)"
_CALLS = f'{_CALLED} (#match? @f "^(require|import)$"))'
_INCLUDES = "(preproc_include path: (_) @i)"
_CLASSES = {"class", "interface", "type", "enum", "struct", "trait"}
_FUNCTIONS = {"function", "method"}
_INDEX_FILES = ("index", "mod", "lib")
_BY_NAME = ("JavaScript", "TypeScript", "TSX", "Go")
"""Languages in which a name without a leading dot is a package, never a neighbouring file."""
_TYPE_NODES = {"type_annotation", "type_alias_declaration", "type_arguments", "type_query", "interface_declaration"}
_SPECIFIERS = {"import_specifier", "export_specifier"}
_VALUES = {"identifier", "namespace_import", "namespace_export"}
"""What an import or export clause may have besides its specifiers; each is a value."""


@dataclass(frozen=True)
class Grammar:
    """``package`` has the grammar, made by ``function``; ``tags``: packages with tags queries (default: its own)."""

    package: str
    imports: str
    function: str = "language"
    tags: tuple[str, ...] = ()


_SCRIPT = ("tree_sitter_javascript", "tree_sitter_typescript")
GRAMMARS = {
    "JavaScript": Grammar("tree_sitter_javascript", f"{_MODULES} {_CALLS}"),
    "TypeScript": Grammar("tree_sitter_typescript", f"{_MODULES} {_REQUIRED} {_CALLS}", "language_typescript", _SCRIPT),
    "TSX": Grammar("tree_sitter_typescript", f"{_MODULES} {_REQUIRED} {_CALLS}", "language_tsx", _SCRIPT),
    "Go": Grammar("tree_sitter_go", "(import_spec path: (_) @i)"),
    "Rust": Grammar("tree_sitter_rust", "(mod_item name: (identifier) @i !body) (use_declaration argument: (_) @i)"),
    "Java": Grammar("tree_sitter_java", "(import_declaration (scoped_identifier) @i)"),
    "C": Grammar("tree_sitter_c", _INCLUDES),
    "C++": Grammar("tree_sitter_cpp", _INCLUDES),
}


def read_other(language: str, text: str) -> Symbols:
    """The symbols of a file in ``language``, without type-only imports.

    ``partly`` says where the grammar does not know the syntax; everything around it counts. A file of which nothing
    could be read has a ``problem``.
    """
    tools = _tools(language)
    if tools is None:
        return Symbols(problem=HOW_TO_INSTALL)
    from tree_sitter import QueryCursor

    parser, tags, imports = tools
    root = parser.parse(text.encode()).root_node
    symbols = Symbols()
    for _, captures in QueryCursor(tags).matches(root):
        kind = next((name.partition(".")[2] for name in captures if name.startswith("definition.")), "")
        names = [_text(node) for node in captures.get("name", [])]
        if kind in _CLASSES | _FUNCTIONS:
            known = symbols.classes if kind in _CLASSES else symbols.functions
            known += [name for name in names if name not in known]
    found = QueryCursor(imports).captures(root).get("i", [])
    found = sorted((node for node in found if not _is_for_types(node)), key=lambda node: node.start_byte)
    symbols.imports = [Import(_text(node).strip("\"'`<>")) for node in found]
    if root.has_error:
        places = _unknown_syntax(root)
        symbols.partly = f"line {places[0]}" + (f" and {len(places) - 1} more" if len(places) > 1 else "")
        if not (symbols.classes or symbols.functions or symbols.imports):
            symbols.problem, symbols.partly = f"{symbols.partly}: syntax that the grammar does not know", ""
    return symbols


def _is_for_types(source: Node) -> bool:
    """Whether the TypeScript compiler removes the import of ``source``."""
    node = source.parent
    while node is not None and node.type not in ("import_statement", "export_statement"):
        if node.type in _TYPE_NODES:
            return True
        node = node.parent
    if node is None:
        return False
    marks = [child for child in node.children if child.type in ("type", "ERROR")]
    return any(_text(child) == "type" for child in marks) or _names_types_only(node)


def _names_types_only(statement: Node) -> bool:
    """Whether every name is marked as a type, as in ``import { type A, type B }``."""
    nodes, specifiers = list(statement.named_children), []
    while nodes:
        node = nodes.pop()
        if node.type in _SPECIFIERS:
            specifiers.append(node)
        elif node.type in _VALUES:
            return False
        elif node.type in ("import_clause", "named_imports", "export_clause"):
            nodes += node.named_children
    return bool(specifiers) and all(each.children[0].type == "type" for each in specifiers)


def _unknown_syntax(root: Node) -> list[int]:
    """The lines of the places that could not be read, in order."""
    lines, nodes = set(), [root]
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            lines.add(node.start_point[0] + 1)
        else:
            nodes += [child for child in node.children if child.has_error]
    return sorted(lines) or [1]


@cache
def _tools(language: str) -> tuple[Parser, Query, Query] | None:
    grammar = GRAMMARS[language]
    try:
        from tree_sitter import Language, Parser, Query

        module = import_module(grammar.package)
        texts = [import_module(package).TAGS_QUERY for package in grammar.tags or (grammar.package,)]
    except ImportError:
        return None
    loaded = Language(getattr(module, grammar.function)())
    return Parser(loaded), Query(loaded, "\n".join(texts)), Query(loaded, grammar.imports)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


class OtherFiles:
    """Resolve the imports of other languages to files: by path, or by the end of a path."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._known = {*paths}
        self._by_end: dict[str, list[str]] = {}
        self._by_folder: dict[str, list[str]] = {}
        for path in paths:
            stem = PurePosixPath(path).with_suffix("")
            for end in {stem.name, PurePosixPath(path).name}:
                self._by_end.setdefault(end, []).append(path)
            self._by_folder.setdefault(stem.parent.name, []).append(path)

    def meant(self, path: str, imported: Import) -> set[str]:
        """The files that an import in ``path`` refers to; none if it is ambiguous."""
        language = LANGUAGE_OF[PurePosixPath(path).suffix.lower()]
        name = imported.name.replace("::", "/")
        if language == "Java":
            name = name.replace(".", "/")
        by_name = language in _BY_NAME and not name.startswith(".")
        beside = set() if by_name else self._beside(path, name)
        return (beside or self._package(name, language) or self._ending(name, language)) - {path}

    def _beside(self, path: str, name: str) -> set[str]:
        here = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        candidates = self._candidates(here, PurePosixPath(path).suffix)
        return next(({each} for each in candidates if each in self._known), set())

    def _candidates(self, place: str, suffix: str) -> Iterator[str]:
        endings = [suffix, *LANGUAGE_OF]
        yield place
        yield from (f"{place}{ending}" for ending in endings)
        # TypeScript imports the names of compiled files.
        yield from (posixpath.splitext(place)[0] + ending for ending in (".ts", ".tsx") if place.endswith(".js"))
        yield from (f"{place}/{index}{ending}" for index in _INDEX_FILES for ending in endings)

    def _package(self, name: str, language: str) -> set[str]:
        """For Go, all files of the folder whose path ends like the import's."""
        if language != "Go" or "/" not in name:
            return set()
        ends = [name.split("/", skipped)[-1] for skipped in range(name.count("/") + 1)]
        for end in ends:
            near = (each for each in self._by_folder.get(end.split("/")[-1], []) if each.endswith(".go"))
            if found := {each for each in near if f"/{posixpath.dirname(each)}".endswith(f"/{end}")}:
                return found
        return set()

    def _ending(self, name: str, language: str) -> set[str]:
        """Match path ends: ``crate::a::b::Thing`` may be ``a/b``, ``a.b.C`` is ``a/b/C``, ``dir/x.h`` ends so."""
        if language not in ("Rust", "Java", "C", "C++"):
            return set()
        parts = [part for part in name.split("/") if part not in ("crate", "self", "super", ".", "..")]
        for length in range(len(parts), 0 if language == "Rust" else len(parts) - 1, -1):
            end = "/".join(parts[:length])
            found = [each for each in self._by_end.get(end.split("/")[-1], []) if _ends(each, end)]
            if len(found) == 1:
                return set(found)
        return set()


def _ends(path: str, end: str) -> bool:
    return any(f"/{each}".endswith(f"/{end}") for each in (path, posixpath.splitext(path)[0]))


def connect_files(files: Mapping[str, Symbols]) -> Connections:
    """Resolve the imports of all files."""
    index = OtherFiles(list(files))
    found = Connections()
    for path, symbols in files.items():
        meant = {imported: index.meant(path, imported) for imported in symbols.imports}
        found.dependencies[path] = set[str]().union(*meant.values())
        found.deferred[path] = set()
        names = [each.name for each, inside in meant.items() if not inside and not each.name.startswith(".")]
        found.outside.update(name.replace("::", "/").split("/")[0] for name in names)
    return found
