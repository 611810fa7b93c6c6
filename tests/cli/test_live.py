"""The live view on a real terminal."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from codex_multi_role.cli.live import picture
from codex_multi_role.presentation.course import Course
from tests.support.console import on_terminal
from tests.support.recorded_runs import whole_run

pytestmark = pytest.mark.real

SHOW_WHOLE_RUN = """
import sys
from tests.support.recorded_runs import whole_run
from codex_multi_role.presentation.course import Course
from codex_multi_role.cli.foreground import open_view

with open_view(Course(), as_json=False, quiet=False, plain=False) as take:
    for event in whole_run():
        take(event.as_record())
    sys.stderr.write("a library's words\\n")
"""


RESIZED = """
import fcntl, struct, sys, termios
from tests.support.recorded_runs import whole_run
from codex_multi_role.presentation.course import Course
from codex_multi_role.cli.foreground import open_view

def resize(columns):
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

resize(120)
with open_view(Course(), as_json=False, quiet=False, plain=False) as take:
    for index, event in enumerate(whole_run()):
        take(event.as_record())
        if index == 10:
            resize(40)
"""
CODES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")


def shown(**variables: str) -> tuple[str, str]:
    """What the program above drew on a terminal, and its stdout."""
    tests = Path(__file__).parents[2]
    drawn, output, code = on_terminal([sys.executable, "-c", SHOW_WHOLE_RUN], tests, PYTHONPATH=str(tests), **variables)
    assert code == 0, drawn
    return drawn, output


def test_last_table_stays_and_the_cursor_comes_back() -> None:
    drawn, output = shown()
    assert "implementer" in drawn.rsplit("Done, cycle 2 of 3", 1)[1]
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")
    assert "a library's words" in drawn
    assert output == ""


def test_terminal_that_was_made_narrow_gets_narrow_lines() -> None:
    top = Path(__file__).parents[2]
    program = [sys.executable, "-c", RESIZED]
    drawn, _, code = on_terminal(program, top, PYTHONPATH=str(top), COLUMNS="", LINES="")
    first, last = (CODES.sub("", part) for part in (drawn.split("\x1b[?25l", 1)[1], drawn.rsplit("Convert", 1)[1]))
    assert code == 0, drawn
    assert max(map(len, first.splitlines())) > 40
    assert max(map(len, last.splitlines())) <= 40


def test_picture_is_svg_with_the_final_table() -> None:
    svg = picture(Course.of(whole_run()))
    assert "url(" not in svg.replace("url(#", "")
    text = "".join(ElementTree.fromstring(svg).itertext()).replace("\xa0", " ")
    assert "tests 002" in text
    assert "implementer" in text
