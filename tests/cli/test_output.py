"""Standard output and standard error: readers that leave or stall, closed streams, tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_multi_role.cli.output import JsonLines, put_table, say
from codex_multi_role.cli.tables import Column
from tests.support.teams import TeamFolder, read
from tests.support.teams import say as answer

RUN = "20260131_101500_0a1b2c3d"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The ends of a pipe: where it is read, and where it is written."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.cli.output.PATIENCE_SECONDS", 0.05)


def test_reader_that_reads_nothing_is_given_up(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = JsonLines()
    with os.fdopen(pipe[1], "w") as stdout, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stdout)
        for number in range(10_000):
            write({"type": "warning", "message": f"{number} {'x' * 5_000}"})
    lines = os.read(pipe[0], 1024 * 1024).decode().splitlines()
    assert [json.loads(line)["message"].split()[0] for line in lines[:-1]] == [f"{n}" for n in range(len(lines) - 1)]
    said = capsys.readouterr().err
    assert said == (
        "warning: events no longer go to standard output: reader stalled for 0.05 s; events.jsonl has all events\n"
    )


def test_words_for_people_that_nobody_reads_are_lost(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with os.fdopen(pipe[1], "w") as stderr, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stderr)
        for number in range(1_000):
            say(f"{number} {'x' * 500}")
    assert os.read(pipe[0], 1024 * 1024).startswith(b"0 xxx")


ALL_CLOSED = "<&- >&- 2>&-"


@pytest.mark.real
def test_run_works_with_closed_streams(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [answer()]})
    redirected = ["sh", "-c", f'exec "$@" {ALL_CLOSED}', "sh", *team.command("--json")]
    run = subprocess.run(redirected, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "")
    assert read(team.runs / "latest/run.json")["outcome"] == "cycles_used_up"


@pytest.mark.real
@pytest.mark.parametrize("closed", ["2>&-", ">&-", ALL_CLOSED])
def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path, closed: str) -> None:
    """What others print there would end up in it."""
    code = """
import os, sys
from codex_multi_role.cli.output import open_missing
open_missing()
with open("number", "w") as file:
    file.write(str(file.fileno()))
for stream in (sys.stdout, sys.stderr):
    stream.write("text")
    stream.flush()
os.execvp("sh", ["sh", "-c", "echo out && echo err >&2 && touch inherited"])
"""
    command = ["sh", "-c", f'"$@" {closed}', "sh", sys.executable, "-c", code]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60, capture_output=True)
    assert int((tmp_path / "number").read_text()) > 2
    assert (tmp_path / "inherited").exists()


def test_nothing_is_cut_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    columns = ("run", Column("turns", number=True), Column("goal", text=10))
    put_table(columns, [(RUN, 8, "long " * 30), ("b", None, "[bold]x")])
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading == f"{'run':<26}turns  goal"
    assert first == f"{RUN}      8  {('long ' * 30).strip()}"
    assert second.split() == ["b", "[bold]x"]


def test_places_are_links_and_stand_whole_below_a_label_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := tmp_path / "a b").mkdir()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    link = f"\x1b]8;;{folder.as_uri()}\x1b\\{folder}\x1b]8;;\x1b\\"
    for columns, gap in (("200", "   "), ("30", "\n")):
        monkeypatch.setenv("COLUMNS", columns)
        say(f"  folder   {folder}")
        assert capsys.readouterr().err == f"  folder{gap}{link}\n"
    say("  next     codex-multi-role resume 20261130_005229_c04bd8e9")
    say("  hint     Pass `resume RUN` if you like.")
    say("see  https://example.org/a")
    told = "  next\ncodex-multi-role resume 20261130_005229_c04bd8e9\n"
    told += "  hint     Pass `resume RUN`\n           if you like.\nsee  \x1b]8;;https://example.org/a\x1b\\"
    assert capsys.readouterr().err.startswith(told)
    for name, value, gap in (("TERM", "dumb", "\n"), ("CI", "true", "   "), ("GITHUB_ACTIONS", "true", "   ")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            say(f"  folder   {folder}")
            assert capsys.readouterr().err == f"  folder{gap}{folder}\n"
