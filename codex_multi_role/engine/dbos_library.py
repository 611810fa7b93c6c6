"""DBOS, imported without the libraries that a run does not use.

DBOS imports a driver for Postgres, and SQLAlchemy's object mapper only to annotate functions. They take two fifths of
the whole import (measured), so that they are imported when something in them is used. So is the library for times of
day, which would also run the program ``file``, without a deadline.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import Any, cast

POSTPONED = ("psycopg", "sqlalchemy.orm", "sqlalchemy.ext.asyncio", "croniter", "dateutil.parser")


class Postponed:
    """Stands for a module, or for what the ``names`` lead to in it, until it is used."""

    def __init__(self, module: str, *names: str) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        if name.startswith("__"):  # the import system looks for a module's own data
            raise AttributeError(name)
        if isinstance(sys.modules.get(self._module), Postponed):
            return Postponed(self._module, *self._names, name)
        return getattr(self._found, name)

    def __call__(self, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - as above
        return self._found(*arguments, **options)

    def __instancecheck__(self, instance: object) -> bool:
        return self._module in sys.modules and isinstance(instance, self._found)  # else nobody has made one

    def __getitem__(self, _: object) -> Postponed:
        return self  # in annotations only

    @cached_property
    def _found(self) -> Any:  # noqa: ANN401 - as above
        found: Any = import_module(self._module)
        for name in self._names:
            found = getattr(found, name)
        return found


@contextmanager
def _postponed() -> Iterator[None]:
    """Within the block, an import of what nobody has imported yet gives its substitute."""
    missing = [name for name in POSTPONED if name not in sys.modules]
    modules = cast(dict[str, object], sys.modules)
    modules.update({name: Postponed(name) for name in missing})
    try:
        yield
    finally:
        for name in missing:
            del modules[name]


with _postponed():
    from dbos import DBOS, DBOSClient, SetWorkflowID, StepOptions, error

DBOSBaseException = error.DBOSBaseException
"""What DBOS raises past `except Exception`: the workflow was cancelled from outside, or another process works on it."""

__all__ = ["DBOS", "DBOSBaseException", "DBOSClient", "SetWorkflowID", "StepOptions"]
