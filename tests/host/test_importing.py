from __future__ import annotations

import gc
import os
import threading

import pytest

from codex_multi_role.host.importing import WITHOUT_PLUGINS, many_imports


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_restored(enabled: bool) -> None:
    if not enabled:
        gc.disable()
    try:
        with many_imports():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_what_was_imported_is_old_for_the_collector() -> None:
    """Otherwise the first collection afterwards would walk all of it."""
    gc.unfreeze()  # what this process of tests keeps
    try:
        with many_imports():
            imported: list[list[int]] = [[] for _ in range(20_000)]
        young, old = gc.get_objects(generation=0), gc.get_objects(generation=2)
        assert [any(each is imported for each in found) for found in (young, old)] == [False, True]
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()


@pytest.mark.parametrize("given", [None, "logfire-plugin"])
def test_variable_for_pydantic_is_restored(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.delenv(WITHOUT_PLUGINS, raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # tests have threads of their own
    if given is not None:
        monkeypatch.setenv(WITHOUT_PLUGINS, given)
    with many_imports():
        assert os.environ[WITHOUT_PLUGINS] == (given or "__all__")
    assert os.environ.get(WITHOUT_PLUGINS) == given


def test_programs_of_other_threads_inherit_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WITHOUT_PLUGINS, raising=False)
    over = threading.Event()
    other = threading.Thread(target=over.wait, args=(30,))
    other.start()
    with many_imports():
        assert WITHOUT_PLUGINS not in os.environ
    over.set()
    other.join()
