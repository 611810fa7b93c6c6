"""A pytest plugin that refuses to continue with any package but the one below pytest's root: the private copy."""

from __future__ import annotations

from pathlib import Path

import pytest

import codex_multi_role


def pytest_configure(config: pytest.Config) -> None:
    imported = Path(codex_multi_role.__file__)
    if not imported.is_relative_to(config.rootpath):
        raise pytest.UsageError(f"{imported} is imported, not the copy below {config.rootpath}")
