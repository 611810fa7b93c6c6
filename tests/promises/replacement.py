"""What a broken copy of the package has in place of a function or a value. This file and its data become a part of it.

The standard library is all that it needs, so it works in every process that imports the copy.
"""

from __future__ import annotations

import functools
import inspect
import marshal
import pickle
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

DATA = Path(__file__).with_suffix(".pickle")


def value() -> Any:
    return pickle.loads(DATA.read_bytes())


def broken(original: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: calls the replacement, with ``original`` first and then the arguments, by position if possible."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def instead(*arguments: object, **named: object) -> object:
        given = signature.bind(*arguments, **named)
        given.apply_defaults()
        return _replacement()(original, *given.args, **given.kwargs)

    return instead


@functools.cache
def _replacement() -> Callable[..., Any]:
    """Loaded at the first call: not all modules that it uses can be imported before."""
    code, closure, modules, names = value()
    names |= {name: import_module(module) for name, module in modules.items()}
    return FunctionType(marshal.loads(code), names, None, None, tuple(map(CellType, closure)))
