"""What holds for every test: a pytest that it starts loads no plugin but those that it is told of, and no CI is about.

What is installed beside it here, hypothesis above all, would take most of its time, and hundreds of them are started.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import browser

__all__ = ["browser"]
WITHOUT_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"


@pytest.fixture(scope="session", autouse=True)
def _as_anywhere() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(WITHOUT_PLUGINS, "1")
        patched.delenv("GITHUB_ACTIONS", raising=False)  # it adds annotations to what commands say
        yield
