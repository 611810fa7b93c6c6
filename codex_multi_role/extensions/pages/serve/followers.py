"""Followers of runs: one per run, shared by all its viewers, closed soon after the last of them leaves."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from anyio import to_thread
from sse_starlette import ServerSentEvent

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.pages.serve.followed_run import FollowedRun, Snapshot
from codex_multi_role.presentation.outcome import run_status
from codex_multi_role.run_folder import RunFolder

T = TypeVar("T")
LOOK_SECONDS = 0.2
LINGER_LOOKS = 25
"""Looks without a visitor before a follower closes: a page opens its stream of events a moment later."""
MOST_VIEWERS = 100
MOST_FOLLOWED = 200
WAKE_SECONDS = 1.0
FIRST_SECONDS = 20.0
"""Maximum wait of a page until a log is read to its end."""


TOO_MANY = ("Too many viewers", "Close other pages of this server, or try again later.")


class TooManyViewers(Exception):
    """The limit of viewers or of followed runs is reached."""


class Follower:
    """Reads one run again and again; ``visitors`` counts those that wait for news."""

    def __init__(self, state: FollowedRun) -> None:
        self.state = state
        self.visitors = 0
        self.closed = False
        self.failure: Exception | None = None
        self._changed = asyncio.Event()

    @property
    def snapshot(self) -> Snapshot:
        return self.state.snapshot

    async def follow(self, is_ending: Callable[[], bool]) -> None:
        """Look once, then until the server ends, the run is gone, or there was no visitor for a while."""
        looks_left = LINGER_LOOKS
        try:
            # waits: for viewers, ended with the server or a while after the last one
            while looks_left and not (self.snapshot.facts and is_ending()):
                if await to_thread.run_sync(self.state.look):
                    self._wake()
                if not self.state.behind:
                    await asyncio.sleep(LOOK_SECONDS)
                looks_left = LINGER_LOOKS if self.visitors else looks_left - 1
        except (OSError, CodexMultiRoleError):
            pass  # the run's folder is gone: viewers see the follower close
        except Exception as error:  # kept for the page: an error of ours must not look like a run that is gone
            self.failure = error
        finally:
            self.closed = True
            self._wake()

    async def change(self) -> None:
        """Wait for news, at most `WAKE_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WAKE_SECONDS):
                await self._changed.wait()  # waits: for changes, ended by WAKE_SECONDS

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Followers:
    """The followers of one server; ``is_ending`` says when the server ends.

    ``refresh`` brings a copy of a folder up to date; see `FollowedRun`.
    """

    def __init__(
        self, form_secret: str, is_ending: Callable[[], bool], refresh: Callable[[RunFolder], str] | None = None
    ) -> None:
        self._refresh = refresh
        self._form_secret = form_secret
        self._is_ending = is_ending
        self._followers: dict[str, tuple[Follower, asyncio.Task[None]]] = {}
        self._viewers = 0

    async def snapshot(self, folder: RunFolder) -> Snapshot:
        """Return the run's current state. Raises `TooManyViewers` and the follower's own failure."""
        async with self._visit(folder) as follower:
            end = time.monotonic() + FIRST_SECONDS
            while not follower.closed and (follower.snapshot.facts is None or follower.state.behind):
                if time.monotonic() > end:
                    break  # the stream delivers the rest
                await follower.change()
            if follower.failure is not None:
                raise follower.failure
            return follower.snapshot

    async def ask(self, folder: RunFolder, question: Callable[[FollowedRun], T]) -> T:
        """Return what ``question`` says of the run as it is now, in a thread. Raises as `snapshot` does."""
        await self.snapshot(folder)
        async with self._visit(folder) as follower:
            return await to_thread.run_sync(question, follower.state)

    @property
    def full(self) -> bool:
        """Whether the limit of viewers is reached."""
        return self._viewers >= MOST_VIEWERS

    async def stream(
        self, folder: RunFolder, after: int, known: frozenset[str] = frozenset()
    ) -> AsyncIterator[ServerSentEvent]:
        """Yield what is new after event number ``after``, until the viewer or the server leaves.

        ``known``: the versions of parts that the viewer has.
        """
        if self.full:
            return
        self._viewers += 1
        try:
            async with self._visit(folder) as follower:
                seen = _Seen(after, known)
                while not follower.closed:
                    if (news := seen.news(follower.snapshot)) is not None:
                        yield news
                    await follower.change()
        except TooManyViewers:
            pass  # the browser reconnects by itself
        finally:
            self._viewers -= 1

    @asynccontextmanager
    async def _visit(self, folder: RunFolder) -> AsyncIterator[Follower]:
        follower = self._follower(folder)
        follower.visitors += 1
        try:
            yield follower
        finally:
            follower.visitors -= 1

    def _follower(self, folder: RunFolder) -> Follower:
        known = self._followers.get(folder.run_id)
        if known is not None and not known[0].closed:
            return known[0]
        if len(self._followers) >= MOST_FOLLOWED:
            raise TooManyViewers
        follower = Follower(FollowedRun(folder, self._form_secret, *([self._refresh] if self._refresh else [])))
        task = asyncio.create_task(follower.follow(self._is_ending), name=f"follow {folder.run_id}")
        self._followers[folder.run_id] = (follower, task)
        task.add_done_callback(lambda done: self._forget(folder.run_id, done))
        return follower

    def _forget(self, run_id: str, task: asyncio.Task[None]) -> None:
        if run_id in self._followers and self._followers[run_id][1] is task:
            del self._followers[run_id]


class _Seen:
    """What one viewer has: log lines up to an event, and the versions of the page's parts."""

    def __init__(self, after: int, known: frozenset[str]) -> None:
        self._number = after
        self._known = known

    def news(self, snapshot: Snapshot) -> ServerSentEvent | None:
        """Return what the viewer lacks, or None. The event's id is the number to continue from."""
        lines = snapshot.lines_after(self._number)
        parts = [part for part in snapshot.parts if part.version not in self._known]
        if not lines and not parts:
            return None
        self._number = snapshot.number
        self._known = frozenset(part.version for part in snapshot.parts)
        payload = {
            "status": snapshot.status,
            "said": run_status(snapshot.status).news,
            "symbol": run_status(snapshot.status).symbol,
            "tone": run_status(snapshot.status).tone,
            "lines": [[line.text, line.role, line.level] for line in lines],
        }
        encoded = f'{json.dumps(payload)[:-1]}, "parts": [{", ".join(part.as_json for part in parts)}]}}'
        return ServerSentEvent(encoded, event="news", id=str(snapshot.number))
