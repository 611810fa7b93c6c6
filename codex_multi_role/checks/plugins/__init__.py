"""pytest plugins for a workspace's tests, found by PYTHONPATH, in a Python that may not have this package."""
