from __future__ import annotations

import os
import pty

import pytest

from codex_multi_role.cli.tables import put_table

RUN = "20260131_101500_0a1b2c3d"


def test_nothing_is_cut_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    put_table(("run", "turns", "goal"), [(RUN, 8, "long " * 30), ("b", None, "[bold]x")], numbers=["turns"])
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading == f"{'run':<26}turns  goal"
    assert first == f"{RUN}      8  {('long ' * 30).strip()}"
    assert second.split() == ["b", "[bold]x"]


def test_narrow_terminal_keeps_the_names_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        put_table(("run", "status", "goal"), [(RUN, "succeeded", "long " * 30)])
        drawn = ""
        while "\n" not in drawn.partition(RUN)[2]:  # a terminal gives what has arrived, not all that is on its way
            drawn += os.read(ours, 65536).decode()
    os.close(ours)
    assert RUN in drawn
    assert "long long long long" not in drawn
