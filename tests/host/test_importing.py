from __future__ import annotations

import gc
import sys

import pytest

from codex_multi_role.host.importing import TURN_SECONDS, many_imports


@pytest.mark.parametrize("enabled", [True, False])
def test_settings_of_the_interpreter_are_restored(enabled: bool) -> None:
    interval = sys.getswitchinterval()
    if not enabled:
        gc.disable()
    try:
        with many_imports():
            assert not gc.isenabled()
            assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
        assert gc.isenabled() is enabled
        assert sys.getswitchinterval() == interval
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
