"""The pytest plugin that judges many mutants in one process, found as those of `checks.plugins`."""
