"""What people see of runs on terminals of all sizes. After a change: ``python -m tests.cli.screens``, and look."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role.cli.live import SHORTEST_PAUSE_SECONDS
from codex_multi_role.presentation.wording import columns_of
from codex_multi_role.run_folder.events import RoleActivity
from tests.cli.screens import SCREENS, Screen
from tests.cli.screens.runs import RUNS, fan_out
from tests.support.recorded_runs import in_order

CODES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\]8;[^\x1b]*\x1b\\)")
WHOLE = re.compile(r"codex-multi-role |file://|/|tests/\S+$")
"""How a line begins that may be wider than a terminal."""
COUNTED = {*["and", "line", "lines", "more", "completed", "pending", "in", "progress", "skipped", "failed"]}
MOST_BYTES_A_SECOND = 16_000


OF_EXTENSION = [pytest.mark.extensions]


@pytest.mark.parametrize(
    "screen",
    [pytest.param(each, marks=OF_EXTENSION if each.kind == "batch" else ()) for each in SCREENS],
    ids=lambda screen: screen.path.stem,
)
def test_screen_is_as_kept_and_breaks_no_word_and_no_width(screen: Screen, tmp_path: Path) -> None:
    written = screen.written(tmp_path)
    assert screen.shown(written) == screen.path.read_text(encoding="utf-8")
    lines = CODES.sub("", written).splitlines()
    assert [each for each in lines if columns_of(each) > screen.columns and screen.is_terminal
            and not WHOLE.match(each.lstrip())] == []  # fmt: skip
    (tmp_path / "wide").mkdir()
    whole = CODES.sub("", replace(screen, columns=900, lines=300).written(tmp_path / "wide"))
    words, known = ({word.strip(".,:") for word in text.split()} for text in (" ".join(lines), whole))
    known |= {part for word in known for part in word.partition("::")}
    assert {word for word in words - known - COUNTED if word.isascii() and not word.isdigit()} == set()
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", written) or screen.mode != "NO_COLOR"
    assert "\x1b" not in written or screen.mode not in ("dumb", "pipe", "CI")


def test_bytes_per_second_do_not_grow_with_the_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They only change what the next drawing shows."""
    drawing = len(Screen("fan_out", 120, 40).written(tmp_path).encode())
    assert drawing / SHORTEST_PAUSE_SECONDS <= MOST_BYTES_A_SECOND
    busy = [RoleActivity(f"coder.{6 + at % 3}", 1, f"command: {at}") for at in range(300)]
    monkeypatch.setitem(RUNS, "busy", in_order(*fan_out(), *busy))
    began = time.monotonic()
    streamed = len(Screen("busy", 120, 40, mode="stream").written(tmp_path).encode())
    assert streamed <= drawing * (2 + (time.monotonic() - began) / SHORTEST_PAUSE_SECONDS)
