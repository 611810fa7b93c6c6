"""New code for the functions of a loaded file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from codex_multi_role.extensions.test_generation.plugins.codex_multi_role_warm import LoadedFunctions

TEXT = """
import functools

def twice(function):
    @functools.wraps(function)
    def call(n):
        return function(n) * 2
    return call

@twice
def price(n):
    return n + 3

class Box:
    @property
    def size(self):
        return 1

def adder(n):
    def add(m):
        return m + n
    return add

def late(n):
    return [each + 1 for each in range(n)]
"""


@pytest.fixture
def loaded(tmp_path: Path) -> ModuleType:
    path = tmp_path / "loaded_file.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("loaded_file", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _functions(module: ModuleType) -> LoadedFunctions:
    return LoadedFunctions(str(module.__file__), TEXT)


def test_every_reference_gets_the_new_code(loaded: ModuleType) -> None:
    """Decorated functions, properties and existing closures included."""
    price, plus_two, box = loaded.price, loaded.adder(2), loaded.Box()
    functions = _functions(loaded)
    for old, new in (("n + 3", "n - 3"), ("* 2", "* 5"), ("return 1", "return 7"), ("m + n", "m - n"), ("+ 1", "+ 4")):
        changes = functions.changes(TEXT.replace(old, new))
        assert changes is not None
        for function, code in changes:
            function.__code__ = code
    assert (price(4), plus_two(5), box.size, loaded.late(2)) == ((4 - 3) * 5, 3, 7, [4, 5])


def test_code_that_cannot_be_replaced_is_refused(loaded: ModuleType) -> None:
    """A function that uses other variables of the one around it, and one that does not exist any more."""
    _ = loaded.adder(2)
    assert _functions(loaded).changes(TEXT.replace("return m + n", "return m")) is None
    del loaded.late
    assert _functions(loaded).changes(TEXT.replace("each + 1", "each + 4")) is None


def test_file_that_is_not_loaded_has_nothing_to_change(tmp_path: Path) -> None:
    path = tmp_path / "never_loaded.py"
    path.write_text(TEXT)
    assert LoadedFunctions(str(path), TEXT).changes(TEXT.replace("n + 3", "n - 3")) == []


def test_existing_generator_of_the_file_is_a_problem(loaded: ModuleType) -> None:
    text = "found = (n + 1 for n in [1])\n"
    exec(compile(text, str(loaded.__file__), "exec"), loaded.__dict__)
    assert _functions(loaded).problem
