"""The command line: the only room that prints, asks and sets exit codes."""
