"""The report of a run: one HTML file with everything that happened, to read, search, print and pass on."""

from codex_multi_role.presentation.page_parts import load_parts
from codex_multi_role.report.page import write_report

__all__ = ["load_parts", "write_report"]
