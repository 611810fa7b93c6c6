"""Runs on a thread of this process, each with an address of its own: a `RunHandle`, and its asynchronous form."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

from codex_multi_role.api.python_team import Team
from codex_multi_role.api.recorded_runs import OnTypedEvent, ReportedRun, Run
from codex_multi_role.api.run_goal import require_arguments, run
from codex_multi_role.presentation.event_tail import follow
from codex_multi_role.run_folder import AskPerson, RunEvent, RunFolder, event_of
from codex_multi_role.run_folder.events import RunStarted

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import RunKeywords

GivenP = ParamSpec("GivenP")
DoneT = TypeVar("DoneT")


class RunHandle:
    """A run that works on a thread of this process. ``run``: what it has left so far, and what one can do about it.

    ``answer``: as `Run.answer`.
    """

    def __init__(self, run: Run, ended: Future[ReportedRun]) -> None:
        self.run, self.answer = run, run.answer
        self._ended = ended

    @property
    def id(self) -> str:
        return self.run.run_id

    @property
    def has_ended(self) -> bool:
        return self._ended.done()

    def events(self) -> Iterator[RunEvent]:
        """Each event from the start on, in order, until the run has ended."""
        return map(event_of, follow(RunFolder(self.run.folder), lambda _: not self.has_ended))

    def wait(self, seconds: float | None = None) -> ReportedRun:
        """How the run ended, once it has. Raises ``TimeoutError`` after ``seconds``, and what `run` raises."""
        return self._ended.result(seconds)

    def cancel(self) -> ReportedRun:
        """Stop the run, and only this one; returns how it ended. Raises `RunBusy` if it does not stop in a minute."""
        if not self.has_ended:
            self.run.cancel()
        return self.wait()  # waits: for the thread, ended by the end of its run

    def pause(self) -> None:
        """Let the run park once the turns at work have ended (`wait` returns then). Raises `UsageError`."""
        self.run.pause()


def start(
    goal: str = "",
    on_event: OnTypedEvent | None = None,
    ask_person: AskPerson | None = None,
    *,
    team: Team | None = None,
    **options: Unpack[RunKeywords],
) -> RunHandle:
    """Start a run on a thread of this process, and return as soon as it has a folder. Otherwise as `run`.

    Raises what `run` raises before anything starts. The process does not end before its runs have.
    """
    require_arguments(options, "goal", "team", on_event=on_event, ask_person=ask_person)
    started, ended = Future[Path](), Future[ReportedRun]()
    call = partial(run, goal, partial(_note_start, started, on_event), ask_person, team=team, **options)
    threading.Thread(target=_work, args=(call, started, ended), name="run").start()
    return RunHandle(Run(started.result()), ended)  # waits: for the folder, ended by the first event or a failure


def _note_start(started: Future[Path], on_event: OnTypedEvent | None, event: RunEvent) -> None:
    if isinstance(event, RunStarted) and not started.done():
        started.set_result(Path(event.folder))
    if on_event is not None:
        on_event(event)


def _work(call: Callable[[], ReportedRun], started: Future[Path], ended: Future[ReportedRun]) -> None:
    try:
        ended.set_result(call())
    except BaseException as error:
        ended.set_exception(error)
        if not started.done():
            started.set_exception(error)


def _on_thread(work: Callable[GivenP, DoneT]) -> Callable[GivenP, Coroutine[Any, Any, DoneT]]:
    return lambda *args, **keywords: asyncio.to_thread(work, *args, **keywords)


class AsyncRunHandle:
    """The same for asyncio: nothing here keeps the event loop waiting. ``answer``: as `Run.answer`, awaited."""

    def __init__(self, handle: RunHandle) -> None:
        self._handle, self.answer = handle, _on_thread(handle.answer)

    @property
    def id(self) -> str:
        return self._handle.id

    @property
    def run(self) -> Run:
        return self._handle.run

    async def events(self) -> AsyncIterator[RunEvent]:
        """As `RunHandle.events`."""
        events = self._handle.events()
        while (event := await asyncio.to_thread(next, events, None)) is not None:
            yield event

    async def wait(self) -> ReportedRun:
        """As `RunHandle.wait`. Whoever stops waiting does not stop the run; leaving `start_async` does."""
        return await asyncio.to_thread(self._handle.wait)

    async def cancel(self) -> ReportedRun:
        """As `RunHandle.cancel`."""
        return await asyncio.to_thread(self._handle.cancel)

    async def pause(self) -> None:
        """As `RunHandle.pause`."""
        await asyncio.to_thread(self._handle.pause)


@asynccontextmanager
async def start_async(
    goal: str = "",
    on_event: OnTypedEvent | None = None,
    ask_person: AskPerson | None = None,
    *,
    team: Team | None = None,
    **options: Unpack[RunKeywords],
) -> AsyncIterator[AsyncRunHandle]:
    """As `start`: ``async with start_async(…) as run``.

    The run is stopped if it still works when the block is left, so that a cancelled task leaves no run behind.
    """
    call = partial(start, goal, on_event, ask_person, team=team, **options)
    starting = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        handle = await asyncio.shield(starting)
        yield AsyncRunHandle(handle)
    finally:
        await asyncio.shield(_stopped(starting))


async def _stopped(starting: asyncio.Future[RunHandle]) -> None:
    """Stop the run once it has started, unless it has ended or could not start."""
    await asyncio.wait([starting])
    if starting.exception() is None and not (handle := starting.result()).has_ended:  # waits: for nothing: it is there
        await asyncio.to_thread(handle.cancel)
