"""pytest plugins that judge many mutants in one process, found as those of `checks.plugins`."""
