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
