"""Small catalogs written to real folders."""

from __future__ import annotations

import pytest

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.catalogs import mistake, two_roles, write

__all__ = ["mistake", "two_roles", "write"]


@pytest.fixture(scope="module")
def shipped() -> RoleSpecCatalog:
    """The catalog that comes with the package."""
    return RoleSpecCatalog.load(packaged_roles())
