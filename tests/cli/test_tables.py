"""Tables on terminals of every width: whole headings, whole names and states, no line that is too long."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.cli.tables import Column, Table
from codex_multi_role.presentation.wording import columns_of, wrapped
from tests.support.catalogs import write_team
from tests.support.console import at_terminal, console
from tests.support.recorded_runs import make_run

WORDS = re.compile(r"`[^`]*`\S*|\S+")


@given(st.text("ab:` ", max_size=90), st.integers(10, 40))
def test_long_line_is_broken_between_words_only(line: str, width: int) -> None:
    lines = wrapped(line, width)
    assert " ".join(lines).split() == line.split()
    assert all(len(each) <= width or len(WORDS.findall(each)) <= 1 for each in lines)


WIDTHS = (60, 80, 120)
LEFT_OUT = {60: ("flow", "turns", "tokens", "cost", "goal"), 80: ("flow", "turns", "tokens", "cost")}
"""Columns of ``runs`` that a narrow terminal does not show: each run is one line."""
RUNS = ("20260131_101500_0a1b2c3d", "20260131_101501_0a1b2c3e")
CODES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
FLOW = "description: Think once, then do, at some length.\nsteps: [{ask: thinker}, {ask: doer, next: [{end: done}]}]\n"
HEADINGS = {
    "runs": ("run", "state", "started", "flow", "turns", "tokens", "cost", "goal"),
    "flows list": ("flow", "inputs", "ends", "description", "file"),
    "roles list": ("role", "model", "effort", "sandbox", "approval", "waits for", "file"),
}
CELLS = {
    "runs": (*RUNS, "interrupted", "ended: cycles", "days ago"),
    "flows list": ("cycles", "once_more_with_feeling", "Think once", "done 0", ".yaml"),
    "roles list": ("thinker", "doer", "$THINKER_MODEL", "workspace-write", "on-request", "catalog.yaml"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_team(tmp_path_factory.mktemp("project"), once_more_with_feeling=FLOW)
    make_run(folder / "runs", RUNS[0], status="interrupted", exit_code=130, goal="long " * 40)
    make_run(folder / "runs", RUNS[1], goal="\N{CJK UNIFIED IDEOGRAPH-6F22} " * 40)
    return folder


def on_screen(command: str, project: Path, width: int) -> list[str]:
    """The lines of a command on a terminal of ``width`` columns."""
    where = [] if command == "runs" else ["--roles", "team"]
    argv = [sys.executable, "-m", "codex_multi_role", *command.split(), *where]
    with at_terminal(argv, project, columns=width) as terminal:
        assert terminal.end() == 0
    return CODES.sub("", terminal.drawn).splitlines()


@pytest.mark.real
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", HEADINGS)
def test_every_heading_and_key_cell_is_whole(project: Path, command: str, width: int) -> None:
    lines = on_screen(command, project, width)
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{HEADINGS[command][0]} "))
    left_out = LEFT_OUT.get(width, ()) if command == "runs" else ()
    shown = [each for each in HEADINGS[command] if each not in left_out]
    headings, found = list(shown), []
    for line in lines[start : start + 4]:
        words = re.split(r" {2,}", line.strip())
        if words != headings[: len(words)]:
            break
        found += words
        del headings[: len(words)]
    assert found == shown, "the headings come in order, whole, before the first row"
    text = "\n".join(lines)
    assert [cell for cell in CELLS[command] if cell not in text] == []
    assert command != "runs" or len(lines) == 1 + len(RUNS)
    table = lines[start : lines.index("", start) if "" in lines[start:] else None]
    assert max(map(columns_of, table)) <= width


@pytest.mark.real
@pytest.mark.parametrize("terminal_kind", ["xterm", "dumb", "without colour"])
def test_state_has_a_colour_where_a_terminal_shows_it(project: Path, terminal_kind: str) -> None:
    """Cycles that are used up are no error."""
    plain = terminal_kind != "xterm"
    argv = [sys.executable, "-m", "codex_multi_role", "runs"]
    term, no_color = ("dumb", "") if terminal_kind == "dumb" else ("xterm", "1" if plain else "")
    with at_terminal(argv, project, TERM=term, NO_COLOR=no_color) as terminal:
        assert terminal.end() == 0
    yellow = [line for line in terminal.drawn.splitlines() if re.search("\x1b\\[33m(interrupted|ended): ", line)]
    assert len(yellow) == (0 if plain else len(RUNS))
    assert "\x1b[31m" not in terminal.drawn


def test_row_is_one_line_in_a_pipe(project: Path) -> None:
    heading, *rows = console("runs", folder=project).stdout.splitlines()
    assert tuple(re.split(r" {2,}", heading)) == HEADINGS["runs"]
    assert [row.split()[0] for row in rows] == list(RUNS)
    assert ("long " * 40).strip() in rows[0]


def drawn(columns: list[Column], row: list[str], width: int | None) -> list[str]:
    table = Table(columns, [row], width)
    return [*table.heading, *table.row(row)]


WIDE = "\N{CJK UNIFIED IDEOGRAPH-6F22}"
NARROW = [Column(name, text=4) for name in "abc"]
COUNTED = [Column("name"), Column("number", number=True), Column("about", text=10)]
ABOUT = ["first", "12", "a text that is long enough"]


@pytest.mark.parametrize(
    ("columns", "row", "width", "lines"),
    [
        (COUNTED, ABOUT, None, ["name   number  about", "first      12  a text that is long enough"]),
        (COUNTED, ABOUT, 30, ["name   number  about", "first      12  a text that..."]),
        # continued below the headings
        (COUNTED, ABOUT, 20, ["name   number", "  about", "first      12", "  a text that is..."]),
        # a path loses its beginning, and leaves a text its room
        ([Column("file", path=10)], ["/home/somebody/roles/catalog.yaml"], 20, ["...oles/catalog.yaml"]),
        ([Column("f", path=6), Column("b", text=6)], ["/a/b/c/d/e.yaml", "all of it"], 18, ["...yaml  all of it"]),
        # short cells leave their room to long ones
        (NARROW, ["x" * 5, "y" * 40, "z" * 40], 41, [f"xxxxx  {'y' * 7}...{'y' * 6}  {'z' * 7}...{'z' * 6}"]),
        # never cut
        ([Column("run"), Column("status")], ["r" * 50, "failed"], 20, ["r" * 50, "  failed"]),
        # two columns wide
        ([Column("a", text=4), Column("b")], [WIDE * 10, "end"], 16, [WIDE * 4 + "...  end"]),
    ],
)
def test_row_is_cut_and_continued(columns: list[Column], row: list[str], width: int | None, lines: list[str]) -> None:
    assert drawn(columns, row, width)[-len(lines) :] == lines
