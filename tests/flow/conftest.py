"""Small catalogs written to real folders."""

from tests.support.catalogs import mistake, two_roles, write

__all__ = ["mistake", "two_roles", "write"]
