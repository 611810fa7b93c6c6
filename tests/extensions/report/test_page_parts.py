"""Parts of the report page that extensions add: entry points in the group ``codex_multi_role.page_parts``."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.extensions.report.page import write_report
from tests.support.browser import Report
from tests.support.plugins import install
from tests.support.recorded_runs import make_run

SOURCE = """
from markupsafe import Markup
from codex_multi_role.extensions.report.page_parts import ReportPart

def extra(folder, changed):
    return ReportPart("extra", "Extra", "What else there is", ["<b>", Markup("<i>of </i>"), folder.run_id])

def nothing(folder, changed):
    return None

def pieces():
    yield "started"
    raise OSError("ghp_0123456789abcdefghij0123456789abcdef is gone")

def halfway(folder, changed):
    return ReportPart("halfway", "Halfway", "Half", pieces())
"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    names = ["extra", "nothing", "halfway"]
    install(tmp_path, monkeypatch, "page_parts", names, SOURCE, ["not_there = extra_page_parts:no_such"])
    return Report(write_report(make_run(tmp_path / "runs", "first")))


def test_part_of_an_extension_is_below_the_turns_and_linked(report: Report) -> None:
    assert '<section id="extra" aria-labelledby="extra-heading">' in report.source
    assert "What else there is <b>of first" in report.text
    assert {"#extra", "#halfway", "#not_there"} < {*report.links}
    assert 'id="nothing"' not in report.source


def test_part_that_fails_says_why_and_stops_no_other(report: Report) -> None:
    assert "Half startedThis cannot be shown: [redacted] is gone" in report.text
    assert "Not there This cannot be shown: the part of the report 'not_there'" in report.text
