"""One role's Codex: a process, a thread that is its memory, and the turns on it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from codex_multi_role.codex.approvals import TOOL_CALL, ApprovalPolicy, Helpers, ToolSpec, answer
from codex_multi_role.codex.events import CodexEvent, EventParser, TurnFinished, describe, params_of, turn_id_of
from codex_multi_role.codex.failures import Remedy
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.transport import GRACE_SECONDS, AppServerTransport, Cancelled
from codex_multi_role.codex.turn import LONGEST_PROMPT, TurnOutcome, TurnRecorder, TurnRequest
from codex_multi_role.errors import (
    CodexCrashed,
    CodexError,
    CodexNotLoggedIn,
    CodexRefused,
    CodexStartFailed,
    CodexTimeout,
    RunInterrupted,
)

INITIALIZE_SECONDS = 30.0
REQUEST_SECONDS = 15.0
THREAD_SECONDS = 30.0
TURN_START_SECONDS = 30.0
INTERRUPT_SECONDS = 5.0
CLIENT_NAME = "codex_multi_role"
CANCELLED = RunInterrupted.reason
MEND = "Mend what it names: a setting (-c, the role's codex_config), config.toml or CODEX_HOME."
UNHEARD = ["turn/diff/updated"]
"""It tells all changes of the turn anew with each: 60 patches of 31 kB made 122 MB. Snapshots say what changed."""

FOUR_WAYS_OUT = (
    "Log in with `codex-multi-role codex login`; or store an API key with `codex-multi-role codex login "
    "--with-api-key`; or name another provider, a local one too, with -c model_provider=…; or try it without any "
    "model: --playbook roman-numerals."
)


@dataclass(frozen=True)
class ThreadSettings:
    """``thread/start``: where the role works, what it may do, which model answers, and which tools of ours it has.

    ``permissions``, a profile that the process was started with, stands in for ``sandbox``. A thread keeps the tools it
    was started with: ``thread/resume`` and ``thread/fork`` take none (measured).
    """

    folder: str
    sandbox: str
    approval_policy: str
    model: str | None
    permissions: str = ""
    tools: tuple[ToolSpec, ...] = ()

    def params(self) -> dict[str, Any]:
        model = {"model": self.model} if self.model else {}
        access = {"permissions": self.permissions} if self.permissions else {"sandbox": self.sandbox}
        return {"cwd": self.folder, "approvalPolicy": self.approval_policy, **access, **model}

    def start_params(self) -> dict[str, Any]:
        tools = {"dynamicTools": [tool.as_json() for tool in self.tools]} if self.tools else {}
        return {**self.params(), **tools}


@dataclass(frozen=True)
class TurnDeadlines:
    """``idle``: the longest silence; ``turn``: the longest turn. Seconds."""

    idle: float
    turn: float


@dataclass(frozen=True)
class ApprovalAnswered:
    """A server request and what was answered."""

    method: str
    decision: str
    detail: str


Observer = Callable[[CodexEvent | ApprovalAnswered], None]


class RoleClient:
    """Starts the role's process and thread, and runs its turns, one at a time.

    ``inherited``: threads of another run, which it goes on with and which are left as they are: by id, the last turn
    on it to remember. ``cancel`` may be called from any thread; everything else belongs to the thread that runs the
    turns.
    """

    def __init__(
        self,
        transport: AppServerTransport,
        thread: ThreadSettings,
        approvals: ApprovalPolicy,
        inherited: Mapping[str, str],
    ) -> None:
        self._transport = transport
        self._settings = thread
        self._thread_folder = thread.folder
        self._approvals = approvals
        self._inherited = inherited
        self._parser = EventParser()
        self._cancelled = threading.Event()
        self._totals: tuple[int, int] | None = None
        self._helpers: Helpers | None = None
        self.broken = ""
        self.thread_id = ""
        self._asked_for: str | None = None
        self.thread_resumed = False
        self.forgot = False
        self._unused = False
        self.model = thread.model or ""

    @property
    def pid(self) -> int:
        return self._transport.pid

    @property
    def settings(self) -> ThreadSettings:
        """Those of the present thread."""
        return self._settings

    @property
    def used(self) -> bool:
        """Whether the present thread has a turn, so that another process can go on with it."""
        return not self._unused

    def start(self, version: str, thread_id: str | None) -> None:
        """Spawn, ``initialize``, check the login, and start a thread or go on with the one of that id.

        A thread that Codex lost is started afresh; ``forgot`` then says so until a turn was completed on it.
        Raises `CodexStartFailed`, `CodexNotLoggedIn`.
        """
        try:
            self.connect(version)
        except CodexNotLoggedIn:
            with _start_failures():  # where config.toml cannot be read, its provider is not known: that is to be told
                self._open_thread(None)
            raise
        with _start_failures():
            self._open_thread(thread_id)

    def connect(self, version: str) -> str:
        """Spawn, ``initialize`` and ask who is logged in; returns that in words. Raises as `start`."""
        self._transport.start()
        with _start_failures():
            self._initialize(version)
            return self._check_login()

    def _initialize(self, version: str) -> None:
        info = {"name": CLIENT_NAME, "title": "codex-multi-role", "version": version}
        capabilities = {"experimentalApi": True, "optOutNotificationMethods": UNHEARD}
        params = {"clientInfo": info, "capabilities": capabilities}
        self._transport.request("initialize", params, INITIALIZE_SECONDS)
        self._transport.notify("initialized")

    def _check_login(self) -> str:
        answer = self._transport.request("account/read", {}, REQUEST_SECONDS)
        account = answer.get("account")
        if account is not None:
            return f"logged in ({account.get('type', 'unknown kind of account')})"
        if answer.get("requiresOpenaiAuth"):
            raise CodexNotLoggedIn("the model provider needs a login and Codex has none", FOUR_WAYS_OUT)
        return "the model provider needs no login"

    def use_thread(self, thread_id: str | None, folder: str) -> None:
        """Go on with another thread of this process in ``folder``: a new one, or the one of that id.

        Raises `CodexError`; a process that crashed or did not answer is ``broken`` then. The id of the present thread
        changes the folder only, and a thread without a turn is a new one.
        """
        if thread_id is None:
            present = self._unused and folder == self._settings.folder
        else:
            present = thread_id in (self.thread_id, self._asked_for)
        self._settings = replace(self._settings, folder=folder)
        if present:
            return
        try:
            self._open_thread(thread_id)
        except (CodexCrashed, CodexTimeout) as error:
            self.broken = str(error)
            raise

    def _open_thread(self, thread_id: str | None) -> None:
        recalled = self._recall(thread_id) if thread_id else None
        result = recalled or self._transport.request("thread/start", self._settings.start_params(), THREAD_SECONDS)
        self.thread_id = _id_of("thread", result)
        self._asked_for, self._thread_folder = thread_id, self._settings.folder
        self.thread_resumed, self._unused = recalled is not None, recalled is None
        self.forgot = bool(thread_id) and recalled is None
        self._totals = None if recalled else (0, 0)
        self.model = str(result.get("model", self.model))

    def _recall(self, thread_id: str) -> Message | None:
        """The thread of that id, or a fork of it where it is inherited; None where Codex has it no more."""
        params = {**self._settings.params(), "threadId": thread_id, "excludeTurns": True}
        last_turn = self._inherited.get(thread_id)
        with contextlib.suppress(CodexRefused):
            if last_turn is None:
                return self._transport.request("thread/resume", params, THREAD_SECONDS)
            return self._transport.request("thread/fork", {**params, "lastTurnId": last_turn}, THREAD_SECONDS)
        return None

    def run_turn(
        self, request: TurnRequest, deadlines: TurnDeadlines, observe: Observer, helpers: Helpers | None = None
    ) -> TurnOutcome:
        """One prompt and all that comes of it. Never raises for a fault of Codex: that is an outcome.

        ``helpers`` answer what the role asks a person, and its calls of tools; the person's time is not the turn's.
        Afterwards ``broken`` says why the process can take no further turn, or is empty.
        """
        recorder = TurnRecorder(self._totals)
        self._unused = False
        self._helpers = helpers
        try:
            outcome = self._run(request, deadlines, observe, recorder)
        except (CodexCrashed, CodexTimeout) as error:
            self.broken = str(error)
            outcome = self._broken_off(error, recorder)
        except CodexRefused as error:
            outcome = recorder.outcome("failed", error.reason, str(error))
        self._totals = recorder.totals
        self.forgot &= outcome.status != "completed"
        if not self.broken:
            self._clean_up(outcome)
        return outcome

    def _broken_off(self, error: CodexError, recorder: TurnRecorder) -> TurnOutcome:
        if self._cancelled.is_set():  # a process that is not there in time, or was killed, is what was wanted
            return recorder.outcome("interrupted", CANCELLED, f"the run was stopped during this turn; {error}")
        return recorder.outcome(error.reason, error.reason, str(error), Remedy.RETRY)

    def _run(
        self, request: TurnRequest, deadlines: TurnDeadlines, observe: Observer, recorder: TurnRecorder
    ) -> TurnOutcome:
        if self._cancelled.is_set():
            return recorder.outcome("interrupted", CANCELLED, "the run was stopped before this turn")
        if len(request.prompt) > LONGEST_PROMPT:
            message = f"the prompt has {len(request.prompt)} characters, Codex takes {LONGEST_PROMPT}"
            return recorder.outcome("failed", "prompt_too_long", message)
        end = time.monotonic() + deadlines.turn
        patience = min(TURN_START_SECONDS, deadlines.idle)
        params = request.params(self.thread_id)
        if self._thread_folder != self._settings.folder:  # a thread that is loaded cannot be opened elsewhere
            params["cwd"] = self._settings.folder
        started = self._transport.request("turn/start", params, patience)
        self._thread_folder = self._settings.folder
        turn_id = recorder.turn_id = _id_of("turn", started)
        while not self._cancelled.is_set():
            received = self._transport.next_message(min(deadlines.idle, self._seconds_to(end)))
            late = self._seconds_to(end) <= 0
            if received is None or late:
                return self._give_up(turn_id, recorder, observe, deadlines, late)
            if isinstance(received, Cancelled):
                break
            finished = self._take(received, turn_id, recorder, observe)
            if finished is not None:
                return recorder.finished(finished)
        self._interrupt(turn_id, recorder, observe)
        return recorder.outcome("interrupted", CANCELLED, "the run was stopped during this turn")

    def _seconds_to(self, end: float) -> float:
        return end + (self._helpers.person_seconds if self._helpers else 0.0) - time.monotonic()

    def _give_up(
        self, turn_id: str, recorder: TurnRecorder, observe: Observer, deadlines: TurnDeadlines, late: bool
    ) -> TurnOutcome:
        """A deadline passed: end the turn, and say which deadline it was."""
        finished = self._interrupt(turn_id, recorder, observe)
        if finished is not None and finished.status == "completed":
            return recorder.finished(finished)
        if late:
            return recorder.outcome("timed_out", "timed_out", f"the turn took longer than {deadlines.turn:g} s")
        return recorder.outcome("stalled", "stalled", f"Codex was silent for {deadlines.idle:g} s", Remedy.RETRY)

    def _take(self, message: Message, turn_id: str, recorder: TurnRecorder, observe: Observer) -> TurnFinished | None:
        """Handle one message; what another turn says, a late ``turn/completed`` above all, is not ours."""
        if "id" in message:
            self._answer(message, recorder, observe)
            return None
        if turn_id_of(message) not in (turn_id, None):
            return None
        event = self._parser.parse(message)
        if event is None:
            return None
        recorder.add(event)
        observe(event)
        return event if isinstance(event, TurnFinished) else None

    def _answer(self, message: Message, recorder: TurnRecorder, observe: Observer) -> None:
        method, params = message["method"], params_of(message)
        answered = answer(method, params, self._approvals, self._helpers)
        self._transport.reply(message["id"], answered.reply)
        if method != TOOL_CALL:
            observe(ApprovalAnswered(method, answered.decision, _detail(params, recorder.started_items)))

    def _interrupt(self, turn_id: str, recorder: TurnRecorder, observe: Observer) -> TurnFinished | None:
        """Ask Codex to end the turn and hear it out; a process that stays deaf is ``broken``, and None comes back.

        Codex refuses an interrupt before ``turn/started`` and never answers one after ``turn/completed``: so it is
        asked once, in between, and only the turn's end counts as the answer.
        """
        asked = False
        self._helpers = None
        end = time.monotonic() + INTERRUPT_SECONDS
        while (remaining := end - time.monotonic()) > 0:
            if recorder.begun and not asked:
                self._transport.ask("turn/interrupt", {"threadId": self.thread_id, "turnId": turn_id})
                asked = True
            message = self._transport.next_message(remaining)
            if message is None or isinstance(message, Cancelled):
                continue
            finished = self._take(message, turn_id, recorder, observe)
            if finished is not None:
                return finished
        self.broken = f"Codex did not end the turn within {INTERRUPT_SECONDS:g} s of being asked to"
        return None

    def _clean_up(self, outcome: TurnOutcome) -> None:
        """A command survives its turn until this is asked (measured), and would write on during the next one."""
        if outcome.status == "completed" and not outcome.ran_commands:
            return
        try:
            self._transport.request("thread/backgroundTerminals/clean", {"threadId": self.thread_id}, REQUEST_SECONDS)
        except CodexRefused:
            pass  # nothing was running
        except CodexError as error:
            self.broken = str(error)

    def cancel(self) -> None:
        """Interrupt the turn that runs, and every later one at once."""
        self._cancelled.set()
        self._transport.cancel()

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End the process, at once if it is broken. Idempotent."""
        self._transport.stop(0 if self.broken else grace_seconds)


@contextlib.contextmanager
def _start_failures() -> Iterator[None]:
    """Whatever goes wrong before the first turn is a failed start, but for a missing login."""
    try:
        yield
    except CodexError as error:
        transient = isinstance(error, CodexTimeout) or (isinstance(error, CodexCrashed) and not error.complaint)
        raise CodexStartFailed(
            f"Codex did not start: {error}", "" if transient else MEND, transient=transient
        ) from error


def _id_of(what: str, result: Message) -> str:
    """The id of the thread or the turn that an answer tells of. Raises `CodexRefused` for one of another shape."""
    told = result.get(what)
    found = told.get("id") if isinstance(told, dict) else None
    if not isinstance(found, str):
        raise CodexRefused(f"Codex answered without the id of a {what}; is it another version?", 0)
    return found


def _detail(params: Mapping[str, Any], started: Mapping[str, Mapping[str, Any]]) -> str:
    """What an approval is about: the command, or the paths of the file change joined by its item id."""
    if "command" in params:
        return str(params["command"])
    item = started.get(str(params.get("itemId")))
    return describe(item) if item else str(params.get("reason") or "")
