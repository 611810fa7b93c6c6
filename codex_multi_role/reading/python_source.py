"""Thread-safe parsing of Python source."""

from __future__ import annotations

import ast
import threading
import warnings
from typing import Literal, overload

_parse_lock = threading.Lock()  # waits: for one parse of a source of bounded size
"""CPython counts the depth of a tree for all threads together (``recursion_depth`` of its ``ast_state``).

Two parallel parses end in ``SystemError: AST constructor recursion depth mismatch`` (seen on 3.11.7).
"""


class NotPython(ValueError):
    """``message`` is the parser's; ``line`` is where it stopped, or None if the error has no line."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(f"cannot be parsed: {message}" if line is None else f"line {line}: {message}")
        self.message = message
        self.line = line


@overload
def syntax_tree(source: str | bytes, mode: Literal["exec"] = "exec") -> ast.Module: ...
@overload
def syntax_tree(source: str | bytes, mode: Literal["eval"]) -> ast.Expression: ...
def syntax_tree(source: str | bytes, mode: Literal["exec", "eval"] = "exec") -> ast.AST:
    """The tree of a module or of one expression; the parser's warnings are suppressed. Raises `NotPython`."""
    with _parse_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source, mode=mode)
        except SyntaxError as error:
            raise NotPython(error.msg, error.lineno or None) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise NotPython(str(error) or type(error).__name__) from error
