"""One role's Codex: a process, a thread that is its memory, and the turns on it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from codex_multi_role.codex.approvals import ApprovalPolicy, Helpers
from codex_multi_role.codex.child import GRACE_SECONDS
from codex_multi_role.codex.failures import Remedy, lacks_descriptors
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.running_turn import CANCELLED, Observer, RunningTurn, TurnDeadlines
from codex_multi_role.codex.thread import RoleThread, ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn_outcome import TurnOutcome, TurnRecorder, TurnRequest
from codex_multi_role.errors import (
    TOO_MANY_FILES,
    CodexCrashed,
    CodexError,
    CodexNotLoggedIn,
    CodexRefused,
    CodexStartFailed,
    CodexTimeout,
)

INITIALIZE_SECONDS = 30.0
REQUEST_SECONDS = 15.0
CLIENT_NAME = "codex_multi_role"
FIX_SETTINGS = "Fix the setting that it names: -c, the role's codex_config, config.toml or CODEX_HOME."
NO_DATABASE = "failed to initialize sqlite state runtime"
"""Codex does not report why: its home may be unwritable, or too few files may be open at once (measured)."""
IF_WRITABLE = "If CODEX_HOME is writable, too many files may be open: raise the limit (`ulimit -n`)."
OPT_OUT_NOTIFICATIONS = ["turn/diff/updated", "rawResponseItem/completed"]
"""The first repeats all changes of the turn: 60 patches of 31 kB made 122 MB. Snapshots show the changes instead. The
second repeats each item of the thread as the model gets it, and comes with the reports of model requests."""

LOGIN_HINT = (
    "Log in with `codex-multi-role codex login`; or store an API key with `codex-multi-role codex login "
    "--with-api-key`; or name another provider, a local one too, with -c model_provider=…; or try it without any "
    "model: --playbook roman-numerals."
)


class RoleClient:
    """Starts the role's process and thread, and runs its turns, one at a time.

    ``inherited`` as in `RoleThread`. ``cancel`` may be called from any thread, everything else only from the thread
    that runs the turns. ``broken`` says why the process cannot run another turn, or is empty.
    """

    def __init__(
        self,
        transport: AppServerTransport,
        settings: ThreadSettings,
        approvals: ApprovalPolicy,
        inherited: Mapping[str, str],
    ) -> None:
        self._transport = transport
        self._approvals = approvals
        self._cancelled = threading.Event()
        self.thread = RoleThread(transport, settings, inherited)
        self.broken = ""
        self.model_warning = ""
        self._needs_openai = False

    @property
    def pid(self) -> int:
        return self._transport.pid

    def start(self, version: str, thread_id: str | None, answered: Callable[[], object] = lambda: None) -> None:
        """Spawn, ``initialize``, check the login, and start a thread or resume the one with ``thread_id``.

        ``answered`` is called after the process's first answer. If Codex lost that thread, a new one is started and
        `RoleThread.forgot` is set. Raises `CodexStartFailed`, `CodexNotLoggedIn`.
        """
        self.connect(version, answered)
        with _start_failures():
            if folders := self.thread.settings.skill_folders:
                self._transport.request("skills/extraRoots/set", {"extraRoots": list(folders)}, REQUEST_SECONDS)
            early = self._ask_for_models() if self.thread.effort else None  # answered while the thread opens
            self.thread.open(thread_id)
            self.model_warning = self._check_model(early)

    def _ask_for_models(self) -> Future[Message]:
        return self._transport.ask("model/list", {"includeHidden": True})

    def _check_model(self, asked: Future[Message] | None) -> str:
        """What `model_warning` says; empty if the binary does not support ``model/list``."""
        if asked is None and not (self._needs_openai or self.thread.effort):
            return ""
        try:
            listed = self._transport.answer(asked or self._ask_for_models(), "model/list", REQUEST_SECONDS)
        except CodexRefused:
            return ""
        return model_warning(listed, self.thread.model, self.thread.effort, only_listed=self._needs_openai)

    def connect(self, version: str, answered: Callable[[], object] = lambda: None) -> str:
        """Spawn, ``initialize`` and check the login; returns the login state as text. Raises like `start`."""
        self._transport.start()
        with _start_failures():
            self._initialize(version)
            answered()
            try:
                return self._check_login()
            except CodexNotLoggedIn:
                self.thread.open(None)  # fails if config.toml is unreadable: its provider is then unknown
                raise

    def _initialize(self, version: str) -> None:
        info = {"name": CLIENT_NAME, "title": "codex-multi-role", "version": version}
        capabilities = {"experimentalApi": True, "optOutNotificationMethods": OPT_OUT_NOTIFICATIONS}
        params = {"clientInfo": info, "capabilities": capabilities}
        self._transport.request("initialize", params, INITIALIZE_SECONDS)
        self._transport.notify("initialized")

    def _check_login(self) -> str:
        answer = self._transport.request("account/read", {}, REQUEST_SECONDS)
        account = answer.get("account")
        self._needs_openai = bool(answer.get("requiresOpenaiAuth"))
        if account is not None:
            return f"logged in ({account.get('type', 'unknown kind of account')})"
        if answer.get("requiresOpenaiAuth"):
            raise CodexNotLoggedIn("the model provider needs a login, and Codex is not logged in", LOGIN_HINT)
        return "the model provider needs no login"

    def use_thread(self, thread_id: str | None, folder: str) -> None:
        """Like `RoleThread.use`. Raises `CodexError`; sets ``broken`` if the process crashed or did not answer."""
        try:
            self.thread.use(thread_id, folder)
        except (CodexCrashed, CodexTimeout) as error:
            self.broken = str(error)
            raise

    def run_turn(
        self,
        request: TurnRequest,
        deadlines: TurnDeadlines,
        observe: Observer,
        helpers: Helpers | None = None,
        stopping: Sequence[threading.Event] = (),
    ) -> TurnOutcome:
        """Run one prompt as a `RunningTurn`. A failure of Codex becomes an outcome and is never raised.

        Each of ``stopping`` ends only this turn; whoever sets it must call `wake`.
        """
        cancelled = (self._cancelled, *stopping)
        turn = RunningTurn(self._transport, self.thread, self._approvals, deadlines, observe, helpers, cancelled)
        self.thread.used = True
        try:
            outcome = turn.run(request)
            self.broken = turn.broken
        except (CodexCrashed, CodexTimeout) as error:
            self.broken = str(error)
            outcome = self._failure_outcome(error, turn.recorder)
        except CodexRefused as error:
            outcome = turn.recorder.outcome("failed", error.reason, str(error))
        self.thread.forgot &= outcome.status != "completed"
        if not self.broken:
            self._clean_up(outcome)
        return outcome

    def _failure_outcome(self, error: CodexError, recorder: TurnRecorder) -> TurnOutcome:
        if self._cancelled.is_set():  # a crash or a timeout is how a cancelled turn may end
            return recorder.outcome("interrupted", CANCELLED, f"the run was stopped during this turn; {error}")
        return recorder.outcome(error.reason, error.reason, str(error), Remedy.RETRY)

    def _clean_up(self, outcome: TurnOutcome) -> None:
        """Stop the turn's commands: otherwise they outlive it (measured) and would write during the next turn."""
        if outcome.status == "completed" and not outcome.ran_commands:
            return
        try:
            self._transport.request("thread/backgroundTerminals/clean", {"threadId": self.thread.id}, REQUEST_SECONDS)
        except CodexRefused:
            pass  # nothing was running
        except CodexError as error:
            self.broken = str(error)

    def wake(self) -> None:
        """Make the running turn check whether it should stop. May be called from any thread."""
        self._transport.wake()

    def cancel(self) -> None:
        """Interrupt the running turn, and every later one immediately."""
        self._cancelled.set()
        self._transport.cancel()

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """End the process, without a grace period if it is broken. Idempotent."""
        self._transport.stop(0 if self.broken else grace_seconds)


@contextlib.contextmanager
def _start_failures() -> Iterator[None]:
    """Convert every error before the first turn, except a missing login, to `CodexStartFailed`."""
    try:
        yield
    except CodexError as error:
        transient = isinstance(error, CodexTimeout) or (isinstance(error, CodexCrashed) and not error.error_line)
        raise CodexStartFailed(
            f"Codex did not start: {error}", "" if transient else _start_hint(str(error)), transient=transient
        ) from error


def _start_hint(message: str) -> str:
    if lacks_descriptors(message):
        return TOO_MANY_FILES
    return f"{FIX_SETTINGS} {IF_WRITABLE}" if NO_DATABASE in message else FIX_SETTINGS


def model_warning(listed: Mapping[str, Any], model: str, effort: str, *, only_listed: bool) -> str:
    """Why ``model`` may fail a turn, according to ``listed``, the answer to ``model/list``; empty if nothing is wrong.

    ``only_listed``: the provider is OpenAI. Codex knows nothing about the models of others.
    """
    data = listed.get("data")
    models = [each for each in data if isinstance(each, Mapping)] if isinstance(data, list) else []
    found = next((each for each in models if each.get("model") == model), None)
    if found is None:
        known = ", ".join(str(each.get("model")) for each in models if not each.get("hidden"))
        return f"Codex does not know the model {model}; it knows {known}" if only_listed and known else ""
    efforts = [str(each.get("reasoningEffort")) for each in found.get("supportedReasoningEfforts") or []]
    if not effort or not efforts or effort in efforts:
        return ""
    return f"the model {model} does not list the reasoning effort {effort}; it lists {', '.join(efforts)}"
