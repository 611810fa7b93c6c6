"""Small catalogs written to real folders."""

from tests.support.catalogs import two_roles, write

__all__ = ["two_roles", "write"]
