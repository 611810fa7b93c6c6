"""What this extension registers: its command."""

from codex_multi_role.cli.lazy_group import LazyCommand

serve = LazyCommand(
    f"{__package__}.serve_command:serve", "Serve live pages of the runs; decide and start runs.", "Look"
)
