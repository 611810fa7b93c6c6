"""What this extension registers: its commands."""

from codex_multi_role.cli.lazy_group import LazyCommand

rerun = LazyCommand(f"{__package__}.rerun_command:rerun", "Repeat a run; equal turns are not asked again.")
replay_test = LazyCommand(
    f"{__package__}.replay_test_command:replay_test", "Replay recordings and compare the results."
)
bundle = LazyCommand(f"{__package__}.bundle_commands:bundle", "Write a run to a file that others can verify.")
verify = LazyCommand(f"{__package__}.bundle_commands:verify", "Run a bundle again and compare everything it claims.")
