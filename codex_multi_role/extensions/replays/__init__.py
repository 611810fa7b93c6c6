"""Runs again without a model: the test of a team by its recordings, and bundles, which another machine checks."""
