"""One follower a run for all its viewers, as many of them as there are places, gone when nobody looks."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sse_starlette import ServerSentEvent

from codex_multi_role.extensions.web import followers
from codex_multi_role.extensions.web.followed_run import FollowedRun
from codex_multi_role.extensions.web.followers import Followers
from codex_multi_role.run_folder import RunFolder
from tests.support.recorded_runs import make_run

DEADLINE_SECONDS = 30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(followers, "LOOK_SECONDS", 0.001)
    return make_run(tmp_path / "runs", "first")


async def told(stream: AsyncIterator[ServerSentEvent]) -> dict[str, Any]:
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
        first, *others = [await told(stream) for stream in streams]
        assert all(other == first for other in others)
        assert len(made) == 1
        assert followers.full
        assert await rest(followers.stream(folder, 0)) == 0  # no place for one more
        ended.set()
        assert [await rest(stream) for stream in streams] == [0, 0, 0]
        assert not followers.full

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
        await told(stream)
        shutil.rmtree(folder.path)
        await rest(stream)

    asyncio.run(look())
