from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.recorded_runs import make_run
from tests.support.workspaces import write_program

BROWSER = '#!/bin/sh\necho "$1" > opened.txt\n'


def test_report_is_written_into_the_folder_of_the_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    done = console("report", "latest", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"wrote {folder.path}/report.html\n"
    assert "<h1>Convert roman numerals</h1>" in (folder.path / "report.html").read_text()
    assert "report.html" in console("show", "latest", folder=tmp_path).stdout


@pytest.mark.real
@pytest.mark.sample("report")
def test_it_is_written_elsewhere_and_opened(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    browser = write_program(tmp_path / "browser", '#!/bin/sh\nprintf %s "$1" > opened.txt\n')
    variables = {"BROWSER": f"{browser} %s"}
    done = console("report", "first", "-o", "page.html", "--open", folder=tmp_path, variables=variables)
    assert done.returncode == 0, done.stderr
    assert not (folder.path / "report.html").exists()
    assert (tmp_path / "opened.txt").read_text() == (tmp_path / "page.html").as_uri()


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    done = console("report", "first", "-o", "no/page.html", folder=tmp_path)
    assert done.returncode == 2
    assert "folder 'no' does not exist" in done.stderr
