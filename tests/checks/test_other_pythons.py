"""The checks that measure, in a project whose Python is of another version than ours."""

from __future__ import annotations

import pytest

from codex_multi_role.checks.interpreter import Interpreter
from codex_multi_role.extensions.measuring.coverage import measure_coverage
from codex_multi_role.extensions.measuring.flaky import find_flaky
from tests.support.checks import MakeContext
from tests.support.generation import ABOVE, BELOW, IMPORT, SIGN

pytestmark = [pytest.mark.real, pytest.mark.extensions]

WHOLE = IMPORT + BELOW + ABOVE
FILES = {"sign.py": SIGN, "tests/test_sign.py": WHOLE}


def test_figures_are_right_in_another_python(make_context: MakeContext, others: dict[str, Interpreter]) -> None:
    for version, python in others.items():
        (link := make_context(FILES).workspace.root / ".venv").unlink(missing_ok=True)
        link.symlink_to(python.environment)
        coverage = measure_coverage(make_context(FILES, target="sign.py"))
        assert (coverage["status"], coverage["coverage"]) == ("passed", 100.0), (version, coverage)
        half = {**FILES, "tests/test_sign.py": IMPORT + BELOW}
        assert measure_coverage(make_context(half, target="sign.py"))["coverage"] == 66.67
        flaky = find_flaky(make_context(FILES, runs=2))
        assert (flaky["status"], flaky["tests"], flaky["flaky"]) == ("ok", 2, {}), (version, flaky)
