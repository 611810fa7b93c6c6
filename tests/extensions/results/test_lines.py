"""Where lines came from, by construction: every line says in its text who wrote it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.lines import LineOrigin, line_history
from codex_multi_role.extensions.results.run_history import RunHistory, history_of
from tests.support.histories import History

pytestmark = pytest.mark.real

FILE = "code.txt"
NUMBER = 8


def origins(histories: list[RunHistory], path: str, now: Path | None = None) -> list[LineOrigin]:
    with line_history(histories) as recorded:
        return recorded.origins(path, now)


def wrote(origin: LineOrigin) -> str:
    """Who wrote a line, as the line itself says it."""
    return f"{origin.role} {origin.turn}" if origin.role else "between" if origin.run else "nobody"


def line_by(who: str, rng: random.Random) -> str:
    return f"{who}: {rng.getrandbits(64):016x} {rng.getrandbits(64):016x}"


def edited(lines: list[str], who: str, rng: random.Random) -> list[str]:
    """Some lines replaced, deleted, inserted, and sometimes a block of them moved."""
    changed = [line_by(who, rng) if rng.random() < 0.15 else line for line in lines if rng.random() > 0.1]
    for _ in range(rng.randint(1, 3)):
        changed.insert(rng.randint(0, len(changed)), line_by(who, rng))
    if len(changed) > NUMBER and rng.random() < 0.3:
        start = rng.randrange(len(changed) - 3)
        block = [changed.pop(start) for _ in range(3)]
        changed[(place := rng.randrange(len(changed))) : place] = block
    return changed


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def random_run(folder: Path, seed: int) -> History:
    rng = random.Random(seed)
    lines = [line_by("nobody", rng) for _ in range(30)]
    history = History(folder, {FILE: text(lines)})
    numbers = dict.fromkeys(("writer", "tester"), 0)
    for step in range(rng.randint(2, 6)):
        lines = (history.workspace / FILE).read_text().splitlines()
        role = rng.choice(("writer", "tester"))
        match rng.randrange(4):
            case 0:
                history.between({FILE: text(edited(lines, "between", rng))})
            case 1:
                copy = history.copied(key := f"step.{step}.0") / FILE
                for _ in range(2):
                    numbers[role] += 1
                    inside = copy.read_text().splitlines()
                    history.turn(role, {FILE: text(edited(inside, f"{role} {numbers[role]}", rng))}, key)
                if rng.random() < 0.5:
                    history.between({"other.txt": str(step)})
                history.merged(key)
            case _:
                numbers[role] += 1
                history.turn(role, {FILE: text(edited(lines, f"{role} {numbers[role]}", rng))})
    history.ended()
    return history


def wrong_lines(history: History) -> tuple[int, int]:
    """How many lines have another origin than they say, and how many there are."""
    found = origins([history_of(history.run)], FILE, history.workspace / FILE)
    wrong = [line for line in found if not line.text.startswith(f"{wrote(line)}: ")]
    return len(wrong), len(found)


def test_lines_have_the_origin_that_they_say(tmp_path: Path) -> None:
    wrong = total = 0
    for seed in range(2):
        (folder := tmp_path / str(seed)).mkdir()
        some, of = wrong_lines(random_run(folder, seed))
        wrong, total = wrong + some, total + of
    assert total > 40
    assert wrong <= total / 1000, (wrong, total)


def test_lines_of_a_removed_copy_are_by_its_last_turn(tmp_path: Path) -> None:
    history = History(tmp_path, {FILE: "one\n"})
    history.copied("write.1.0")
    history.turn("writer", {FILE: "one\ntwo\n"}, "write.1.0")
    history.merged("write.1.0")
    history.ended()
    for shown in (["nobody", "writer 1"], ["nobody", "writer 1"]):
        found = origins([history_of(history.run)], FILE, None)
        assert [wrote(line) for line in found] == shown
        history.worktrees.discard("write.1.0")


def test_line_of_today_is_by_nobody(tmp_path: Path) -> None:
    history = History(tmp_path, {FILE: "one\ntwo\n"})
    history.turn("writer", {FILE: "one\n2\n"})
    history.ended()
    (history.workspace / FILE).write_text("one\n2\nthree\n")
    found = origins([history_of(history.run)], FILE, history.workspace / FILE)
    assert [wrote(line) for line in found] == ["nobody", "writer 1", "nobody"]


def test_file_that_is_in_no_state_is_refused(tmp_path: Path) -> None:
    history = History(tmp_path, {FILE: "one\n"})
    for histories, message in (
        ([history_of(history.run)], "x.py is not a file in"),
        ([], "no run recorded"),
    ):
        with pytest.raises(UsageError, match=message):
            origins(histories, "x.py", None)
