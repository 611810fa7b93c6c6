"""The small catalogs of the tests of `catalog`."""

from tests.catalog.conftest import two_roles, write

__all__ = ["two_roles", "write"]
