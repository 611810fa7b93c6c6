"""One role's Codex: a process, a thread that is its memory, and the turns on it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping

from codex_multi_role.codex.approvals import ApprovalPolicy, Helpers
from codex_multi_role.codex.child import GRACE_SECONDS
from codex_multi_role.codex.failures import Remedy, lacks_descriptors
from codex_multi_role.codex.model_list import model_warning
from codex_multi_role.codex.running_turn import CANCELLED, Observer, RunningTurn, TurnDeadlines
from codex_multi_role.codex.thread import RoleThread, ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn import TurnOutcome, TurnRecorder, TurnRequest
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
MEND = "Mend what it names: a setting (-c, the role's codex_config), config.toml or CODEX_HOME."
OPT_OUT_NOTIFICATIONS = ["turn/diff/updated"]
"""It tells all changes of the turn anew with each: 60 patches of 31 kB made 122 MB. Snapshots say what changed."""

LOGIN_HINT = (
    "Log in with `codex-multi-role codex login`; or store an API key with `codex-multi-role codex login "
    "--with-api-key`; or name another provider, a local one too, with -c model_provider=…; or try it without any "
    "model: --playbook roman-numerals."
)


class RoleClient:
    """Starts the role's process and thread, and runs its turns, one at a time.

    ``inherited`` as in `RoleThread`. ``cancel`` may be called from any thread; everything else belongs to the thread
    that runs the turns. ``broken`` says why the process can take no further turn, or is empty.
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

    def start(self, version: str, thread_id: str | None) -> None:
        """Spawn, ``initialize``, check the login, and start a thread or go on with the one of that id.

        A thread that Codex lost is started afresh; `RoleThread.forgot` says so.
        Raises `CodexStartFailed`, `CodexNotLoggedIn`.
        """
        self.connect(version)
        with _start_failures():
            if folders := self.thread.settings.skill_folders:
                self._transport.request("skills/extraRoots/set", {"extraRoots": list(folders)}, REQUEST_SECONDS)
            self.thread.open(thread_id)
            self.model_warning = self._check_model()

    def _check_model(self) -> str:
        """What `model_warning` says; another binary may have no list of models."""
        if not (self._needs_openai or self.thread.settings.effort):
            return ""
        try:
            listed = self._transport.request("model/list", {"includeHidden": True}, REQUEST_SECONDS)
        except CodexRefused:
            return ""
        return model_warning(listed, self.thread.model, self.thread.settings.effort, only_listed=self._needs_openai)

    def connect(self, version: str) -> str:
        """Spawn, ``initialize`` and ask who is logged in; returns that in words. Raises as `start`."""
        self._transport.start()
        with _start_failures():
            self._initialize(version)
            try:
                return self._check_login()
            except CodexNotLoggedIn:
                self.thread.open(None)  # fails where config.toml cannot be read: its provider is not known then
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
            raise CodexNotLoggedIn("the model provider needs a login and Codex has none", LOGIN_HINT)
        return "the model provider needs no login"

    def use_thread(self, thread_id: str | None, folder: str) -> None:
        """As `RoleThread.use`. Raises `CodexError`; a process that crashed or did not answer is ``broken`` then."""
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
        stopping: threading.Event | None = None,
    ) -> TurnOutcome:
        """One prompt and all that comes of it, as `RunningTurn`; a fault of Codex is an outcome, never raised.

        ``stopping`` ends this turn alone; whoever sets it calls `wake`.
        """
        cancelled = (self._cancelled, stopping or self._cancelled)
        turn = RunningTurn(self._transport, self.thread, self._approvals, deadlines, observe, helpers, cancelled)
        self.thread.used = True
        try:
            outcome = turn.run(request)
            self.broken = turn.broken
        except (CodexCrashed, CodexTimeout) as error:
            self.broken = str(error)
            outcome = self._broken_off(error, turn.recorder)
        except CodexRefused as error:
            outcome = turn.recorder.outcome("failed", error.reason, str(error))
        self.thread.totals = turn.recorder.totals
        for thread, agent in turn.sub_agents.items():
            self.thread.sub_agents[thread] = agent.totals
            outcome = outcome.with_tokens_of(agent.outcome("", "", ""))
        self.thread.forgot &= outcome.status != "completed"
        if not self.broken:
            self._clean_up(outcome)
        return outcome

    def _broken_off(self, error: CodexError, recorder: TurnRecorder) -> TurnOutcome:
        if self._cancelled.is_set():  # a process that is not there in time, or was killed, is what was wanted
            return recorder.outcome("interrupted", CANCELLED, f"the run was stopped during this turn; {error}")
        return recorder.outcome(error.reason, error.reason, str(error), Remedy.RETRY)

    def _clean_up(self, outcome: TurnOutcome) -> None:
        """A command survives its turn until this is asked (measured), and would write on during the next one."""
        if outcome.status == "completed" and not outcome.ran_commands:
            return
        try:
            self._transport.request("thread/backgroundTerminals/clean", {"threadId": self.thread.id}, REQUEST_SECONDS)
        except CodexRefused:
            pass  # nothing was running
        except CodexError as error:
            self.broken = str(error)

    def wake(self) -> None:
        """Have the turn that runs look whether it is to stop. From any thread."""
        self._transport.wake()

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
        transient = isinstance(error, CodexTimeout) or (isinstance(error, CodexCrashed) and not error.error_line)
        hint = TOO_MANY_FILES if lacks_descriptors(str(error)) else MEND
        raise CodexStartFailed(
            f"Codex did not start: {error}", "" if transient else hint, transient=transient
        ) from error
