"""What this extension registers: its commands."""

from codex_multi_role.cli.lazy_group import LazyCommand

rerun = LazyCommand(f"{__package__}.rerun_command:rerun", "Repeat a run; equal turns are not asked again.", "Run")
