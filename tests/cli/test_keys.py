"""Keys while a run is drawn, and the terminal as it was before, however the drawing ends."""

from __future__ import annotations

import os
import pty
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.console import Session, at_terminal
from tests.support.reviews import outcome
from tests.support.teams import TeamFolder, say, with_flow
from tests.support.tools import EDITOR

pytestmark = pytest.mark.real

KEYS = "d changes  f follow  p pause  o open  ? keys"
TOP = str(Path(__file__).parents[2])
VIEW = """
import os, signal, time
from codex_multi_role.cli import live
from codex_multi_role.cli.foreground import open_view
from codex_multi_role.presentation.course import Course
from tests.support.recorded_runs import whole_run

def shown():
    with open_view(Course(), as_json=False, quiet=False, plain=False) as view:
        for event in whole_run()[:-1]:
            view(event.as_record())
        open("told", "w").close()
        while not any(map(os.path.exists, ("end", "crash"))):
            time.sleep(0.02)
            if os.path.exists("stop"):
                os.remove("stop")
                os.kill(os.getpid(), signal.SIGSTOP)
        if os.path.exists("crash"):
            live.render = None
            time.sleep(0.5)
            view.stop()
"""
SHELL = """
import os, signal, termios

signal.signal(signal.SIGTTOU, signal.SIG_IGN)
before, child = termios.tcgetattr(0), os.fork()
if not child:
    os.setpgid(0, 0)
    IN_BACKGROUND or os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    shown()
    os._exit(0)
if IN_BACKGROUND:
    input()
    os.tcsetpgrp(0, child)
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    how = "stopped" if os.WIFSTOPPED(status) else f"ended with {os.waitstatus_to_exitcode(status)}"
    os.tcsetpgrp(0, os.getpgrp())
    is_as_before = termios.tcgetattr(0) == before
    termios.tcsetattr(0, termios.TCSANOW, before)
    os.write(2, f"{how}, as before: {is_as_before}\\n".encode())
    if not os.WIFSTOPPED(status):
        break
    if input() == "fg":
        os.tcsetpgrp(0, child)
    os.kill(-child, signal.SIGCONT)
"""


def attributes(session: Session) -> list[Any]:
    return termios.tcgetattr(session.descriptor)


def fresh() -> list[Any]:
    """The attributes of a new terminal."""
    ours, theirs = pty.openpty()
    found = termios.tcgetattr(theirs)
    os.close(ours)
    os.close(theirs)
    return found


@pytest.mark.parametrize("end", ["end", "crash", "Ctrl-C", "SIGTERM"])
def test_terminal_is_as_before_after_every_end(tmp_path: Path, end: str) -> None:
    with at_terminal([sys.executable, "-c", f"{VIEW}shown()"], tmp_path, PYTHONPATH=TOP) as terminal:
        terminal.wait_for(KEYS)
        assert not attributes(terminal)[3] & (termios.ICANON | termios.ECHO)
        if end == "Ctrl-C":
            terminal.type("\x1a\x03")  # Ctrl-Z changes nothing: no shell would continue it
        elif end == "SIGTERM":
            terminal.child.terminate()
        else:
            (tmp_path / end).touch()
        assert (terminal.end() == 0) is (end == "end")
        assert attributes(terminal) == fresh()
    assert ("NoneType" in terminal.drawn) is (end == "crash")


def test_ctrl_z_leaves_the_terminal_and_takes_it_again(tmp_path: Path) -> None:
    program = [sys.executable, "-c", f"{VIEW}IN_BACKGROUND = False{SHELL}"]
    with at_terminal(program, tmp_path, PYTHONPATH=TOP) as terminal:
        for _ in range(2):
            terminal.wait_for(KEYS)
            terminal.type("\x1a")
            terminal.wait_for("stopped, as before: True")
            terminal.type("fg\n")
        terminal.wait_for(KEYS)
        (tmp_path / "end").touch()
        terminal.wait_for("ended with 0, as before: True")
        assert terminal.end() == 0


def test_in_the_background_nothing_is_drawn_and_no_key_is_read(tmp_path: Path) -> None:
    """The terminal stays the shell's until the run is in the foreground."""
    program = [sys.executable, "-c", f"{VIEW}IN_BACKGROUND = True{SHELL}"]
    with at_terminal(program, tmp_path, PYTHONPATH=TOP) as terminal:
        while not (tmp_path / "told").exists():
            assert terminal.child.poll() is None
            time.sleep(0.02)
        assert attributes(terminal) == fresh()
        terminal.type("fg\n")
        terminal.wait_for("fg")
        shown = terminal.drawn
        terminal.wait_for(KEYS)
        (tmp_path / "end").touch()
        terminal.wait_for("ended with 0, as before: True")
        assert terminal.end() == 0
    assert shown.strip() == "fg"


def test_stopped_run_that_ends_in_the_background_draws_no_more(tmp_path: Path) -> None:
    """Stopped without being told, as by `kill -STOP`: it left no last state, and the terminal is the shell's now."""
    program = [sys.executable, "-c", f"{VIEW}IN_BACKGROUND = False{SHELL}"]
    with at_terminal(program, tmp_path, PYTHONPATH=TOP) as terminal:
        terminal.wait_for(KEYS)
        (tmp_path / "stop").touch()
        terminal.wait_for("stopped, as before: False\r\n")
        before = len(terminal.drawn)
        terminal.type("bg\n")
        (tmp_path / "end").touch()
        terminal.wait_for("ended with 0, as before: True")
        assert terminal.end() == 0
    assert terminal.drawn[before:] == "bg\r\nended with 0, as before: True\r\n"


def test_keys_page_changes_follow_roles_write_the_report_and_pause(tmp_path: Path) -> None:
    made = say("Made it.", files=[{"path": "new.py", "content": "made = 1\n"}])
    team = TeamFolder(tmp_path, {"one": EDITOR}, {"one": [made, say("never")]})
    wait = {"check": "command", "with": {"argv": ["sh", "-c", "until test -e go; do sleep 0.1; done"]}}
    with_flow(team, {"steps": [{"ask": "one"}, wait, {"id": "again", "ask": "one"}]})
    with at_terminal(
        team.command("--flow", "own"), tmp_path, columns=250, PAGER="cat", DISPLAY="", WAYLAND_DISPLAY=""
    ) as terminal:
        terminal.wait_for("command: ")
        terminal.wait_for(KEYS)
        for key, told in {
            "?": "d  changes so far, in the pager",
            "d": "+made = 1",
            "f": "following one:",
            "o": "/report.html",
            "pd": "",  # pasted
            "p": "it parks once the turns at work have ended.",
        }.items():
            terminal.type(key)
            terminal.wait_for(told)
            terminal.wait_for(KEYS)
        (team.workspace / "go").touch()
        assert terminal.end() == 4
        assert attributes(terminal) == fresh()
    assert outcome(team) == ("paused", 4)
    assert "one: turn 1 completed" in terminal.drawn.split("following one:")[1]
