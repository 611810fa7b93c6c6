"""Small catalogs written to real folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.catalogs import TWO_ROLES, Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("text", "name")`` puts the text (or bytes) into a file of the test's folder and returns its path."""

    def written(content: str | bytes, name: str = "catalog.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.fixture
def two_roles(write: Write) -> RoleSpecCatalog:
    """A catalog of planner and developer, without any texts of its own."""
    return RoleSpecCatalog.load(write(TWO_ROLES))


@pytest.fixture(scope="module")
def shipped() -> RoleSpecCatalog:
    """The catalog that comes with the package."""
    return RoleSpecCatalog.load(packaged_roles())
