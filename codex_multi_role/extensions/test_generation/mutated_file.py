"""The mutants of a Python file, found with libcst: `mutation_operators` has the changes.

The whole file is rewritten for each of them, so that decorated functions and nested ones have mutants, too, and any
test runner can judge them.
"""

from __future__ import annotations

import difflib
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import accumulate, count
from operator import itemgetter
from typing import cast

import libcst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider, WhitespaceInclusivePositionProvider

from codex_multi_role.extensions.test_generation.mutants import Mutant, MutantOptions
from codex_multi_role.extensions.test_generation.mutation_operators import MUTATION_OPERATORS

MAX_DIFF_CHARACTERS = 600
NEVER_ASKED = frozenset({"len", "isinstance"})
"""Functions whose arguments are not changed: any call kills such a mutant."""


@dataclass(frozen=True)
class MutationSite:
    """A possible mutant: ``new`` instead of ``old``."""

    id: str
    line: int
    lines: range
    operator: str
    old: libcst.CSTNode
    new: libcst.CSTNode


class MutatedFile:
    """The mutants of the file text ``source``, in its functions and methods, decorated and nested ones included.

    Excluded are annotations and decorators, raise statements, whose messages are seldom specified, and code that runs
    on import: a mutant there breaks the import, which says nothing about the tests. Raises ValueError for a text that
    libcst cannot read.
    """

    def __init__(self, source: str) -> None:
        try:
            wrapper = MetadataWrapper(libcst.parse_module(source))
        except (libcst.ParserSyntaxError, RecursionError) as error:
            raise ValueError(f"its mutants cannot be found: {error}") from error
        self._source = source
        self._module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._spans = wrapper.resolve(WhitespaceInclusivePositionProvider)
        self._starts = [0, *accumulate(map(len, StringIO(source, newline="")))]
        self._statements = [self._span(self._positions[each]) for each in self._module.body]
        self.places = list(self._found())

    def sample(self, most: int, seed: int) -> list[Mutant]:
        """A random sample of at most ``most`` mutants that compile, one of every line before a second of any."""
        order = list(self.places)
        random.Random(seed).shuffle(order)
        nth: dict[int, Iterator[int]] = defaultdict(count)
        return self._made(sorted(order, key=lambda place: next(nth[place.line])), most)

    def chosen(self, options: MutantOptions) -> list[Mutant]:
        """The mutants with the ids in ``options``, otherwise a sample. Raises ValueError for an unknown id."""
        if (ids := options.mutants) is None:
            return self.sample(options.max_mutants, options.seed)
        places = {place.id: place for place in self.places}
        if unknown := [each for each in ids if each not in places]:
            raise ValueError(f"no mutant {unknown[0]!r} of this file")
        return self._made((places[each] for each in ids), len(ids))

    def _found(self) -> Iterator[MutationSite]:
        numbers: dict[int, Iterator[int]] = defaultdict(lambda: count(1))
        for statement, old in _nodes(self._module, self._module, inside_function=False):
            for kind, name, operator in MUTATION_OPERATORS:
                for new in operator(old) if isinstance(old, kind) else ():
                    line = self._positions[old].start.line
                    number = next(numbers[line])
                    yield MutationSite(f"{line}.{number}", line, self._lines(statement, old), name, old, new)

    def _lines(self, statement: libcst.CSTNode, node: libcst.CSTNode) -> range:
        """All lines of a simple statement; of one with a body, those down to the end of ``node``, in its head."""
        last = statement if isinstance(statement, libcst.SimpleStatementLine) else node
        return range(self._positions[statement].start.line, self._positions[last].end.line + 1)

    def _made(self, places: Iterable[MutationSite], most: int) -> list[Mutant]:
        texts = {self._source}
        mutants: list[Mutant] = []
        for place in places:
            if len(mutants) == most:
                break
            text, part = self._text(place)
            if text not in texts and _compiles(part):
                texts.add(text)
                diff = _diff(self._source, text)
                mutants.append(Mutant(place.id, place.line, place.lines, place.operator, text, diff))
        return sorted(mutants, key=lambda mutant: (mutant.line, int(mutant.id.partition(".")[2])))

    def _text(self, place: MutationSite) -> tuple[str, str]:
        """The file's text with the change, and the part of it that the change can make invalid.

        Only the node is rewritten if its own text is at its place; that part is then the top-level statement around it.
        Otherwise both are the whole file.
        """
        start, end = self._span(self._spans[place.old])
        if self._source[start:end] != self._module.code_for_node(place.old):
            text = cast("libcst.Module", self._module.deep_replace(place.old, place.new)).code
            return text, text
        first, last = self._statements[bisect_right(self._statements, start, key=itemgetter(0)) - 1]
        new = self._module.code_for_node(place.new)
        return self._with(new, start, end), self._with(new, start, end, first, last)

    def _with(self, new: str, start: int, end: int, first: int = 0, last: int | None = None) -> str:
        """The source from ``first`` to ``last`` with ``new`` from ``start`` to ``end``."""
        return f"{self._source[first:start]}{new}{self._source[end:last]}"

    def _span(self, place: CodeRange) -> tuple[int, int]:
        """Where it starts and ends in the text, in characters."""
        start, end = (self._starts[each.line - 1] + each.column for each in (place.start, place.end))
        return start, end


def _nodes(
    node: libcst.CSTNode, statement: libcst.CSTNode, inside_function: bool
) -> Iterator[tuple[libcst.CSTNode, libcst.CSTNode]]:
    """All nodes that may change, each with the statement around it, in text order."""
    left_out = libcst.Annotation | libcst.Decorator | libcst.Parameters | libcst.Raise
    if isinstance(node, left_out) or _is_docstring(node):
        return
    if isinstance(node, libcst.Call) and isinstance(node.func, libcst.Name) and node.func.value in NEVER_ASKED:
        return
    if isinstance(node, libcst.SimpleStatementLine | libcst.BaseCompoundStatement):
        statement = node
    if inside_function:
        yield statement, node
    for child in node.children:
        yield from _nodes(child, statement, inside_function or isinstance(node, libcst.FunctionDef))


def _is_docstring(node: libcst.CSTNode) -> bool:
    return isinstance(node, libcst.Expr) and isinstance(node.value, libcst.SimpleString | libcst.ConcatenatedString)


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _diff(old: str, new: str) -> str:
    """Only the changed lines, ``-`` the old and ``+`` the new ones."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))[:MAX_DIFF_CHARACTERS]
