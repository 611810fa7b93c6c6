"""Plugins of pytest for the tests of a workspace: found by PYTHONPATH, in a Python that may not know this package."""
