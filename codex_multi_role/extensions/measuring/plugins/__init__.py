"""pytest plugins for tests under measurement, found as those of `checks.plugins`."""
