"""What this extension registers: the command ``report``, and the page that each run writes when it ends."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.cli.lazy_group import LazyCommand
from codex_multi_role.run_folder import RunFolder

report = LazyCommand(f"{__package__}.command:report", "Write the report of a run, one HTML page.", "Look")


class Report:
    """A `RunPage`."""

    command = "report"

    @staticmethod
    def prepare() -> None:
        from codex_multi_role.extensions.report.page import prepare_pages  # here, as below: commands do without

        prepare_pages()

    @staticmethod
    def write(folder: RunFolder) -> Path:
        from codex_multi_role.extensions.report.page import write_report

        return write_report(folder)
