"""The command line: the only package that prints, asks and sets exit codes."""
