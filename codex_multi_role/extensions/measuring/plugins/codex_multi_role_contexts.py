"""Record coverage per test, fixtures included; all parameters of a test are one.

Names are those of pytest's JUnit report: ``tests.test_a.TestX::test_y``.
"""

from __future__ import annotations

from collections.abc import Generator

import coverage
import pytest


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(_name(item.nodeid))
    yield
    if measuring is not None:
        measuring.switch_context("")


def _name(node: str) -> str:
    path, *names = node.partition("[")[0].split("::")
    return ".".join([path.removesuffix(".py").replace("/", "."), *names[:-1]]) + f"::{names[-1]}"
