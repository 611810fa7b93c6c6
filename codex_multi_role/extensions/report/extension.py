"""What this extension registers: the command ``report``. Each run writes `page.ReportPage` when it ends."""

from codex_multi_role.cli.lazy_group import LazyCommand

report = LazyCommand(f"{__package__}.command:report", "Write the report of a run, one HTML page.", "Look")
