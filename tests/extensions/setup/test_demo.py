"""``demo``: a team at work, and its report in the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.console import on_terminal
from tests.support.teams import read
from tests.support.workspaces import write_program

BROWSER = '#!/bin/sh\nprintf %s "$1" > "${0}.opened"\n'


@pytest.mark.long
def test_demo_opens_the_report_of_its_run(tmp_path: Path) -> None:
    """No short test runs the demo to its end on a terminal."""
    browser = write_program(tmp_path / "browser", BROWSER)
    (temporary := tmp_path / "temporary").mkdir()
    command = [sys.executable, "-X", "utf8", "-m", "codex_multi_role", "demo"]  # a preloaded one has its TMPDIR
    variables = {"BROWSER": f"{browser} %s", "TMPDIR": str(temporary)}
    drawn, output, code = on_terminal(command, tmp_path, **variables)
    assert (output, code) == ("", 0), drawn
    (folder,) = temporary.glob("codex-multi-role-demo-*")
    assert (folder / "workspace/roman.py").exists()
    assert read(folder / "runs/latest/run.json")["outcome"] == "done"
    opened = Path(unquote(urlsplit((tmp_path / "browser.opened").read_text()).path))
    assert opened.resolve() == (folder / "runs/latest/report.html").resolve()
    assert str(folder) in drawn.replace("\r\n", "")
