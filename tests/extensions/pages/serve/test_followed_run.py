"""One run read piece by piece, the same as at once, by one follower for all its viewers, gone when nobody looks."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sse_starlette import ServerSentEvent

from codex_multi_role.extensions.pages.serve import followed_run, followers
from codex_multi_role.extensions.pages.serve.followed_run import FollowedRun
from codex_multi_role.extensions.pages.serve.followers import Followers
from codex_multi_role.extensions.pages.serve.log_lines import LogFilter
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.plain import PlainLines
from codex_multi_role.run_folder import RunFolder
from tests.support.recorded_runs import make_run, whole_run


def told(state: FollowedRun) -> list[str]:
    return [line.text for line in state.snapshot.lines]


def followed(folder: RunFolder) -> FollowedRun:
    """All that there is has been read."""
    state = FollowedRun(folder, "secret")
    state.look()
    return state


def expected() -> list[str]:
    plain = PlainLines(Course())
    return [line for record in whole_run() for line in plain.of(record)]


def test_run_read_in_pieces_is_the_one_read_at_once(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    content = folder.events_path.read_bytes()
    folder.events_path.write_bytes(b"")
    state = followed(folder)
    for begin in range(0, len(content), 100):  # lines come in pieces, as a kill or a slow disk may leave them
        with folder.events_path.open("ab") as file:
            file.write(content[begin : begin + 100])
        state.look()
    assert told(state) == expected()
    assert state.snapshot.number == len(whole_run())
    assert state.snapshot.parts == followed(folder).snapshot.parts


def test_whoever_comes_back_gets_what_is_new_only(tmp_path: Path) -> None:
    state = followed(make_run(tmp_path / "runs", "first"))
    assert told(state) == expected()
    assert state.snapshot.lines_after(0) == [*state.snapshot.lines]
    assert state.snapshot.lines_after(state.snapshot.number) == []
    later = state.snapshot.lines_after(5)
    assert later == [*state.snapshot.lines][-len(later) :]


@pytest.mark.parametrize(
    "line", ["{", "[]", "null", '{"type": "turn_ended"}', '{"type": "turn_ended", "at": 7}', '{"at": "x"}', "\xff"]
)
def test_line_that_cannot_be_read_is_passed_over(tmp_path: Path, line: str) -> None:
    folder = make_run(tmp_path / "runs", "first")
    content = folder.events_path.read_bytes()
    folder.events_path.write_bytes(line.encode("latin-1") + b"\n" + content)
    state = followed(folder)
    assert told(state) == expected()


def test_long_log_is_read_bit_by_bit_and_only_its_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_run, "EVENTS_A_LOOK", 1000)
    folder = make_run(tmp_path / "runs", "first")
    warning = {"type": "warning", "at": "2026-01-31T10:15:00.000+00:00"}
    lines = (json.dumps({**warning, "message": f"number {number}"}) for number in range(2500))
    folder.events_path.write_text("\n".join(lines) + "\n")
    state = FollowedRun(folder, "secret")
    looks = 0
    while state.look() or state.behind:
        looks += 1
    assert looks >= 3
    assert (len(state.snapshot.lines), state.snapshot.dropped) == (followed_run.KEPT_LINES, 1500)
    assert told(state)[-1].endswith("number 2499")


STATES = [
    ({"status": "running", "exit_code": None}, "killed", True),
    ({"status": "succeeded", "outcome": "done", "exit_code": 0}, "succeeded", False),
    ({"status": "ended", "suggestion": "resume RUN --cycles 6"}, "ended", True),
    ({"status": "ended", "suggestion": "fork RUN --from plan"}, "ended", False),
    ({"status": "parked", "exit_code": 5, "suggestion": "resume RUN --max-turns 6"}, "parked", True),
    ({"status": "parked", "outcome": "waiting_for_review", "exit_code": 4}, "parked", True),
    ({"status": "interrupted", "outcome": "cancelled", "exit_code": 130}, "interrupted", True),
]


@pytest.mark.parametrize(("record", "status", "is_resumable"), STATES)
def test_what_can_be_done_depends_on_how_it_ended(
    tmp_path: Path, record: dict[str, Any], status: str, is_resumable: bool
) -> None:
    state = followed(make_run(tmp_path / "runs", "first", **record))
    assert state.snapshot.facts is not None
    assert (state.snapshot.status, state.snapshot.facts.is_resumable) == (status, is_resumable)
    controls = {part.name: part.html for part in state.snapshot.parts}["controls"]
    assert ("Resume this run" in controls) == is_resumable
    assert "Stop the run" not in controls
    limit = record.get("suggestion", "").rpartition("--")[2].partition(" 6")[0]
    assert (f'name="{limit}" value="6"' in controls) == ("--" in record.get("suggestion", "") and is_resumable)
    assert ("codex-multi-role fork first" in controls) == ("fork" in record.get("suggestion", ""))


def test_record_of_another_version_is_shown_too(tmp_path: Path) -> None:
    state = followed(make_run(tmp_path / "runs", "first", options={}))
    assert "--cycles 6" in {part.name: part.html for part in state.snapshot.parts}["controls"]


def test_run_whose_record_is_damaged_is_shown_as_that(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    folder.record_path.write_text("{")
    state = followed(folder)
    assert state.snapshot.status == "unreadable"
    assert told(state) == expected()


def test_overview_names_failed_tests_and_existing_cycles(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    lines = folder.events_path.read_text().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if '"tests_ended"' in line)
    folder.events_path.write_text("".join(lines[: last + 1]))
    assert "cycle 1 of 3" in parts(folder)["now"]
    assert "<dd>test_a::test_one</dd>" in parts(folder)["overview"]
    folder.events_path.write_text(folder.events_path.read_text().replace('"cycles": 3', '"cycles": 0'))
    assert "cycle 1" not in parts(folder)["now"]


def parts(folder: RunFolder) -> dict[str, str]:
    return {name: part.html for name, part in followed(folder).snapshot.named.items()}


def test_result_is_above_the_state(tmp_path: Path) -> None:
    now = parts(make_run(tmp_path / "runs", "first", result={"title": "Answer", "text": "42"}))["now"]
    assert now.index("42") < now.index("All cycles are used up")


def test_tree_and_timeline_lead_to_what_the_panel_shows(tmp_path: Path) -> None:
    state = followed(make_run(tmp_path / "runs", "first"))
    shown = {name: part.html for name, part in state.snapshot.named.items()}
    assert 'href="?at=turn-planner-2#panel"' in shown["tree"]
    assert 'data-target="turn-planner-2"' in shown["path"]
    entry, latest = state.entry("turn-planner-2"), state.entry("")
    assert entry is not None
    assert [part.title for part in entry.parts] == ["Prompt", "Handoff", "Details"]
    assert latest is not None
    assert latest.id == "turn-implementer-3"
    assert state.entry("turn-nobody-1") is None


def test_search_finds_texts_in_files_but_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "a-secret-of-mine")
    folder = make_run(tmp_path / "runs", "first")
    (folder.path / "planner/turn_001/changes.patch").write_text("+token = 'a-secret-of-mine'\n")
    state = followed(folder)
    [(leaf, shown), *_], *_ = state.search("role: PLANNER")
    assert (leaf.id, shown) == ("turn-planner-1", ["", "Role: planner", ""])
    assert [leaf.id for leaf, _ in state.search("assert 1 == 2")[0]] == ["tests-001"], "of a turn, and by itself"
    assert [leaf.id for leaf, _ in state.search("+token")[0]] == ["turn-planner-1"]
    assert state.search("+token", "check")[0] == state.search("secret-of")[0] == []
    assert [leaf.tone for leaf, _ in state.search("", "problem")[0]] == ["bad", "bad"]
    monkeypatch.setattr(followed_run, "FOUND_AT_ONCE", 3)
    first, after, _ = state.search("", "turn")
    rest, end, whole = state.search("", "turn", after or 0)
    assert (len(first), len(rest), end, whole) == (3, 2, None, 7)


def test_long_run_is_not_drawn_again_for_each_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_run, "FEW_TURNS", 1)
    monkeypatch.setattr(followed_run, "TURNS_DRAWN_A_SECOND", 0.001)
    folder = make_run(tmp_path / "runs", "first")
    content = folder.events_path.read_text().splitlines(keepends=True)
    folder.events_path.write_text("".join(content[:12]))
    state = followed(folder)
    before = state.snapshot.named
    folder.events_path.write_text("".join(content))
    assert state.look()
    after = state.snapshot.named
    assert [name for name in after if after[name] != before[name]] == ["now", "overview"]


LINES = [
    ({}, 30),
    ({"role": "planner"}, 8),
    ({"level": "info"}, 25),
    ({"level": "problem"}, 4),
    ({"level": "no such"}, 30),
    ({"text": "TURN 1 STARTS"}, 2),
    ({"role": "implementer", "level": "problem", "text": "turn"}, 1),
]


@pytest.mark.parametrize(("wanted", "count"), LINES)
def test_log_is_filtered_by_role_level_and_text(tmp_path: Path, wanted: dict[str, str], count: int) -> None:
    state = followed(make_run(tmp_path / "runs", "first"))
    assert sum(map(LogFilter(**wanted).fits, state.snapshot.lines)) == count


DEADLINE_SECONDS = 30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(followers, "LOOK_SECONDS", 0.001)
    return make_run(tmp_path / "runs", "first")


async def news_of(stream: AsyncIterator[ServerSentEvent]) -> dict[str, Any]:
    news = await anext(stream)
    return dict(json.loads(news.data or ""))


async def rest(stream: AsyncIterator[ServerSentEvent]) -> int:
    """How much more there is until its end."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        return len([news async for news in stream])


def test_all_viewers_of_run_share_one_follower(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end with the server."""
    monkeypatch.setattr(followers, "MOST_VIEWERS", 3)
    made = []

    def make(folder: RunFolder, form_secret: str) -> FollowedRun:
        made.append(folder)
        return FollowedRun(folder, form_secret)

    monkeypatch.setattr(followers, "FollowedRun", make)
    ended = asyncio.Event()

    async def look() -> None:
        followers = Followers("secret", ended.is_set)
        streams = [followers.stream(folder, 0) for _ in range(3)]
        first, *others = [await news_of(stream) for stream in streams]
        assert all(other == first for other in others)
        assert len(made) == 1
        assert followers.full
        assert await rest(followers.stream(folder, 0)) == 0  # no place for one more
        ended.set()
        assert [await rest(stream) for stream in streams] == [0, 0, 0]
        assert not followers.full

    asyncio.run(look())


def test_page_that_is_made_while_the_server_ends_shows_the_run(folder: RunFolder) -> None:
    async def look() -> None:
        snapshot = await Followers("secret", lambda: True).snapshot(folder)
        assert snapshot.status == "ended"

    asyncio.run(look())


def test_nobody_is_followed_for_long_when_nobody_looks(folder: RunFolder) -> None:
    async def look() -> None:
        followers = Followers("secret", lambda: False)
        assert (await followers.snapshot(folder)).number > 0
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait_for(task, DEADLINE_SECONDS)

    asyncio.run(look())


def test_follower_error_is_not_reported_as_missing_run(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(state: FollowedRun) -> bool:
        raise KeyError("cycles")

    monkeypatch.setattr(FollowedRun, "look", fail)

    async def look() -> None:
        with pytest.raises(KeyError, match="cycles"):
            await Followers("secret", lambda: False).snapshot(folder)

    asyncio.run(look())


def test_run_whose_folder_goes_ends_the_stream(folder: RunFolder) -> None:
    async def look() -> None:
        followers = Followers("secret", lambda: False)
        stream = followers.stream(folder, 0)
        await news_of(stream)
        shutil.rmtree(folder.path)
        await rest(stream)

    asyncio.run(look())
