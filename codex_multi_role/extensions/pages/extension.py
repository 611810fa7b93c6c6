"""What this extension registers: its commands. Each run writes `report.page.ReportPage` when it ends."""

from codex_multi_role.cli.lazy_group import LazyCommand

report = LazyCommand(f"{__package__}.report.command:report", "Write the report of a run, one HTML page.", "Look")
serve = LazyCommand(
    f"{__package__}.serve.serve_command:serve", "Serve live pages of the runs; decide and start runs.", "Look"
)
