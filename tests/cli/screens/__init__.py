"""Screens of runs in a terminal emulator, kept as text; ``python -m tests.cli.screens`` writes them again."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pyte
import pytest

from codex_multi_role.cli.boundary import run_guarded
from codex_multi_role.cli.foreground import open_view
from codex_multi_role.cli.main import group
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import Question, Questions, RunFolder
from codex_multi_role.run_folder.events import RunEnded
from tests.cli.screens.runs import QUESTION, RUNS
from tests.support.recorded_runs import record, whole_run

RUN = "20260131_101500_0a1b2c3d"
PLACE = re.compile(rb"folder\s+(\x1b]8;;[^\x1b]*\x1b\\)?\S*/runs/")


class Stream(io.BytesIO):
    """Stands for stderr: a terminal, or a pipe."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@dataclass(frozen=True)
class Screen:
    """``kind``: ``live``, ``end`` (as ``watch`` leaves it), ``all`` (``watch --all``) or ``batch``, with its end.

    ``mode``: what is special; with ``keys``, a person is at the terminal.
    """

    run: str
    columns: int = 80
    lines: int = 24
    kind: str = "live"
    mode: str = ""

    @property
    def path(self) -> Path:
        name = f"{self.run}-{self.kind}-{self.columns}x{self.lines}-{self.mode}".rstrip("-")
        return Path(__file__).parent / f"{name}.txt"

    @property
    def is_terminal(self) -> bool:
        return self.mode not in ("pipe", "CI")

    @property
    def encoding(self) -> str:
        return "ascii" if self.mode == "ascii" else "utf-8"

    def written(self, folder: Path) -> str:
        """All that goes to stderr while the run is shown."""
        stream = Stream(is_terminal=self.is_terminal)
        own = {"TERM": "dumb" if self.mode == "dumb" else "xterm", "COLUMNS": str(self.columns), "TZ": "UTC"}
        own |= {"LINES": str(self.lines), "NO_COLOR": "1" if self.mode == "NO_COLOR" else ""}
        own |= dict.fromkeys(("CI", "GITHUB_ACTIONS"), "true" if self.mode == "CI" else "")
        with ExitStack() as after, pytest.MonkeyPatch.context() as patch, chdir(folder):
            after.callback(time.tzset)  # in the time zone of before
            for name, value in own.items():
                patch.setenv(name, value) if value else patch.delenv(name, raising=False)
            time.tzset()
            text = io.TextIOWrapper(stream, self.encoding, errors="backslashreplace", write_through=True)
            patch.setattr(sys, "stdin", after.enter_context(typed_on()) if self.mode == "keys" else io.StringIO())
            patch.setattr(sys, "stderr", text)
            drawn = self._live(stream) if self.kind == "live" else self._written(stream)
            return PLACE.sub(rb"folder   \1/runs/", drawn).decode(self.encoding)

    def _live(self, stream: Stream) -> bytes:
        """Its first drawing has all events: when the next one comes depends on the machine."""
        course, told = Course(), RUNS[self.run]
        if self.run == "forked":
            course.inherit(whole_run()[:-1])
        at_once = 0 if self.mode in ("pipe", "dumb", "stream") else len(told) - 1
        for event in told[:at_once]:
            course.apply(event)
        with open_view(course, as_json=False, quiet=False, plain=False, over=lambda: True) as view:
            for event in told[at_once:]:
                view(event.as_record())
            while self.mode == "keys" and b"? keys" not in stream.getvalue():  # waits: for the keys' own thread
                time.sleep(0.02)
            return stream.getvalue()

    def _written(self, stream: Stream) -> bytes:
        if self.kind == "batch":
            from tests.support.shown_batches import shown_batch  # here: it is of an extension

            with shown_batch():
                running = stream.getvalue()
            return running if self.run == "running" else stream.getvalue()
        for at, run in enumerate(RUNS if self.kind == "all" else [self.run]):
            make_folder(Path("runs"), run, RUN if self.kind == "end" else f"20260131_1015{at:02d}_0a1b2c3d")
        run_guarded(group, ["watch", "--all" if self.kind == "all" else RUN])
        return stream.getvalue()

    def shown(self, written: str) -> str:
        """As the emulator shows it, with its scrollback; of a pipe, what was written."""
        if not self.is_terminal:
            return written
        screen = pyte.HistoryScreen(self.columns, self.lines, history=1000)
        screen.set_mode(pyte.modes.LNM)
        pyte.Stream(screen).feed(written)
        above = ["".join(row[at].data for at in range(self.columns)) for row in screen.history.top]
        return "\n".join(line.rstrip() for line in (*above, *screen.display)).rstrip("\n") + "\n"


@contextmanager
def typed_on() -> Iterator[TextIO]:
    """The input of a terminal of its own, at which nobody types."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb"), os.fdopen(theirs) as stream:
        yield stream


def make_folder(runs_dir: Path, run: str, run_id: str) -> RunFolder:
    """The folder of the run as it ended, or was killed."""
    folder, told = RunFolder.create(runs_dir, run_id), RUNS[run]
    folder.events_path.write_text("".join(json.dumps(event.as_record()) + "\n" for event in told))
    ends = told[-1] if isinstance(told[-1], RunEnded) else RunEnded("running", "", "", 0, {}, "")
    names = ("status", "outcome", "reason", "exit_code", "totals")
    changes = {name: getattr(ends, name) for name in names} | ({} if ends.outcome else {"exit_code": None})
    folder.write_record(record(run_id, flow=run, **changes))
    if run == "parked":
        Questions(folder.path).ask(Question("approve.1", QUESTION, "A greeting", told[-1].at, None, None))
    return folder


SMALL, WIDE = (60, 15), (120, 40)
SCREENS = (
    *(Screen("fan_out"), Screen("fan_out", *WIDE), Screen("fan_out", *SMALL), Screen("fan_out", mode="ascii")),
    *(Screen("crowd", *SMALL), Screen("called"), Screen("called", *SMALL), Screen("parallel"), Screen("waiting")),
    *(Screen("until", kind="end"), Screen("review"), Screen("review", *SMALL), Screen("review", mode="pipe")),
    *(Screen("parked", kind="end"), Screen("parked", *SMALL, "end"), Screen("resumed"), Screen("forked", *SMALL)),
    *(Screen("tests_failing"), Screen("tests_failing", *WIDE), Screen("tests_failing", mode="dumb")),
    *(Screen("paused", *SMALL, "end"), Screen("failed", kind="end"), Screen("failed", *WIDE, "end", "NO_COLOR")),
    *(Screen("failed", kind="end", mode="CI"), Screen("wide"), Screen("wide", *SMALL)),
    *(Screen("batch", kind="all"), Screen("batch", *SMALL, "all"), Screen("batch", *WIDE, "all")),
    *(Screen("tests_failing", mode="keys"), Screen("fan_out", *SMALL, mode="keys")),
    *(Screen("running", kind="batch"), Screen("running", *SMALL, "batch", "ascii"), Screen("ended", kind="batch")),
    *(Screen("running", *WIDE, "batch"), Screen("ended", *SMALL, "batch")),
)
