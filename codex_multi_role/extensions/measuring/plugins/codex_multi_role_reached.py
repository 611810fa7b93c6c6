"""A program: from coverage.py's data per test, write a report of what each test reached.

    python codex_multi_role_reached.py SETTINGS INCLUDED REPORT MOST

Writes ``{test: {file: {"lines": [line], "branches": [[from, to]]}}}``, of at most MOST tests, to REPORT.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import coverage
from coverage.exceptions import NoDataError

Reached = dict[str, dict[str, list[object]]]


def main(settings: str, included: str, report: str, most: str) -> None:
    measured = coverage.Coverage(config_file=settings)
    measured.load()
    tests = sorted(measured.get_data().measured_contexts() - {""})[: int(most)]
    Path(report).write_text(json.dumps({test: _reached(measured, included, test, f"{report}.one") for test in tests}))


def _reached(measured: coverage.Coverage, included: str, test: str, report: str) -> Reached:
    try:
        measured.json_report(include=[included], contexts=[f"^{re.escape(test)}$"], outfile=report)
    except NoDataError:
        return {}
    files = json.loads(Path(report).read_text())["files"]
    reached = {name: file for name, file in files.items() if file["executed_lines"]}
    parts = ("lines", "branches")
    return {name: {each: file.get(f"executed_{each}", []) for each in parts} for name, file in reached.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
