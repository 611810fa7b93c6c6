"""A loopback proxy in front of the real model provider: it forwards every request and records the answers.

The answer is passed to Codex piece by piece and unchanged. Credentials of a request go only to the provider: no header
is recorded, and if an answer repeats one, it is masked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, cast

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.answers import BROKEN, TEXT, reduced
from codex_multi_role.extensions.replays.recording import COMPACTION, TURN, Line, RecordingFile
from codex_multi_role.extensions.replays.upstream import ProviderFailed, Upstream, is_address
from codex_multi_role.host.redaction import SHORTEST_SECRET, Redactor
from codex_multi_role.host.unpacking import GZIP, UnpackBudget, UnpackingRefused, inflate
from codex_multi_role.playbook.loopback import END_OF_STREAM, LoopbackHandler, LoopbackServer
from codex_multi_role.playbook.request import Asked, read_asked

SETTLING_SECONDS = 1.0
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
REQUEST = UnpackBudget(max_bytes=256 * 1024 * 1024, max_entries=1, max_depth=1, max_seconds=60.0)
OF_THE_CONNECTION = frozenset(
    {"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "accept-encoding", "expect"}
)
NO_SECRETS = (
    *("accept", "content-", "host", "originator", "session", "thread", "user-agent", "version"),
    *("x-client-", "x-codex-"),
)
"""Prefixes of the header names that Codex sends to everybody; any other header may hold a secret."""
OF_A_LOGIN = ("authorization", "proxy-authorization", "cookie")
"""Headers whose value is more than the secret."""
ACCOUNT_HEADER = "chatgpt-account-id"


class RecordingProxy(LoopbackServer):
    """Forwards requests and appends the exchanges to ``file``.

    Raises `CodexUnavailable` if the loopback interface gives no port.
    """

    def __init__(self, file: RecordingFile) -> None:
        self.file = file
        self.routes: dict[str, tuple[str, str, str]] = {}
        self._in_progress: set[Upstream] = set()
        self._steps: dict[tuple[str, str], int] = {}
        self._active_turns: set[str] = set()
        self._changed_turns = threading.Condition()  # waits: for the turn before, ended by SETTLING_SECONDS
        self._lock = threading.Lock()  # waits: for one line to a file
        super().__init__("recording", _RecordingHandler)

    def through(self, name: str, base_url: str, account_url: str = "") -> str:
        """The address that replaces a provider's ``base_url``.

        ``account_url``: the target of requests with a ChatGPT login instead of an API key. Raises `UsageError`.
        """
        if not is_address(base_url):
            raise UsageError(f"the base_url of the model provider {name} is not an HTTP or HTTPS address")
        route = (name, base_url.rstrip("/"), account_url.rstrip("/"))
        with self._lock:
            known = next((key for key, each in self.routes.items() if each == route), "")
            key = known or f"provider-{len(self.routes) + 1}"
            self.routes[key] = route
        return f"{self.address}/{key}"

    def stop(self) -> None:
        self.stopping.set()
        with self._lock:
            in_progress = list(self._in_progress)
        for each in in_progress:
            each.close()
        super().stop()

    def begun(self, upstream: Upstream) -> None:
        with self._lock:
            self._in_progress.add(upstream)

    def over(self, upstream: Upstream) -> None:
        upstream.end()
        with self._lock:
            self._in_progress.discard(upstream)

    @contextmanager
    def in_order(self, asked: Asked | None) -> Iterator[None]:
        """Delay a turn's next request until its last answer is recorded, because Codex may send it before that."""
        if asked is None:
            yield
            return
        with self._changed_turns:
            self._changed_turns.wait_for(lambda: asked.turn_id not in self._active_turns, SETTLING_SECONDS)
            self._active_turns.add(asked.turn_id)
        try:
            yield
        finally:
            with self._changed_turns:
                self._active_turns.discard(asked.turn_id)
                self._changed_turns.notify_all()

    def write(self, asked: Asked, provider: str, answer: Line, masked: Redactor) -> None:
        """Record one exchange. A request that is sent again, because it failed, is the same step."""
        with self._lock:
            step = self._steps.get((asked.turn_id, asked.kind), 0)
            if answer["end"] == "completed":
                self._steps[asked.turn_id, asked.kind] = step + 1
        who: dict[str, Any] = {"unit": asked.unit} if asked.unit else {}
        which = {**who, **asked.ask._asdict(), "turn": asked.turn_id, "kind": asked.kind, "step": step}
        prompt = {"prompt": asked.prompt} if asked.kind == TURN and step == 0 else {}
        line = {"type": "exchange", **which, "provider": provider, "model": asked.model, **prompt, **answer}
        self.file.add(masked.within(line))


class _RecordingHandler(LoopbackHandler):
    server_version = "codex-multi-role-recording"

    @property
    def proxy(self) -> RecordingProxy:
        return cast(RecordingProxy, self.server)

    def serves(self, path: str) -> bool:
        return path.startswith(tuple(f"/{key}/" for key in self.proxy.routes))

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        if "Upgrade" in self.headers:
            super().do_GET()
        elif self.admit():
            self._forward(None, None)

    def do_POST(self) -> None:  # noqa: N802 - as above
        if self.admit() and (body := self.body()) is not None:
            asked = self._asked(body)
            with self.proxy.in_order(asked):
                self._forward(body, asked)

    def _asked(self, body: bytes) -> Asked | None:
        """The turn of the request; None for a request that is forwarded without being recorded."""
        if not self.path.partition("?")[0].endswith("/responses"):
            return None
        with suppress(UsageError, UnpackingRefused):
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            asked = read_asked(inflate(body, REQUEST, GZIP) if is_packed else body)
            return asked if asked.kind in (TURN, COMPACTION) else None
        return None

    def _forward(self, body: bytes | None, asked: Asked | None) -> None:
        key, _, rest = self.path[1:].partition("/")
        name, base_url, account_url = self.proxy.routes[key]
        base = account_url if account_url and ACCOUNT_HEADER in self.headers else base_url
        upstream = Upstream(f"{base}/{rest}")
        given = {name.lower(): value for name, value in self.headers.items()}  # as Codex writes them
        sent = {**upstream.login, **{each: given[each] for each in given if each not in OF_THE_CONNECTION}}
        self.proxy.begun(upstream)
        try:
            answer = self._exchange(upstream, sent, body)
            cut_short = answer["end"] != "completed" and self.proxy.stopping.is_set()
            if asked is not None and not cut_short:
                self.proxy.write(asked, name, answer, _masks(sent))
        except RecursionError:
            self.proxy.file.fail("an answer is nested too deeply")
        finally:
            self.proxy.over(upstream)

    def _exchange(self, upstream: Upstream, sent: Mapping[str, str], body: bytes | None) -> Line:
        """Send the request, pass the answer on as it arrives, and return what to record of it."""
        try:
            status, headers = upstream.send(self.command, sent, body)
        except ProviderFailed as error:
            self.refuse(HTTPStatus.BAD_GATEWAY, str(error))
            return {"status": HTTPStatus.BAD_GATEWAY.value, "end": TEXT, "headers": {}, "text": str(error)}
        told = {each: value for each, value in headers.items() if each not in OF_THE_CONNECTION and each != "date"}
        self.begin(status, {**told, "Transfer-Encoding": "chunked"})
        kept = bytearray()
        whole = self._pass_through(upstream, kept.extend)
        if len(kept) > LARGEST_ANSWER_BYTES:
            return {"status": status, "end": BROKEN, "items": [], "text": "", "note": "too large to be recorded"}
        return reduced(status, headers, bytes(kept), whole=whole)

    def _pass_through(self, upstream: Upstream, keep: Callable[[bytes], None]) -> bool:
        """Whether the answer was complete. Codex also ends it by hanging up, when its turn was interrupted."""
        size = 0
        try:
            while data := upstream.piece():
                size += len(data)
                if size - len(data) <= LARGEST_ANSWER_BYTES:
                    keep(data)
                self.chunk(data)
                self.wfile.flush()
            self.chunk(END_OF_STREAM)
        except (ProviderFailed, OSError):
            self.close_connection = True
            return False
        return True


def _masks(headers: Mapping[str, str]) -> Redactor:
    """Masks the header values that may be secret: ``Bearer abc`` as a whole, and ``abc``."""
    told = {name: value for name, value in headers.items() if not name.startswith(NO_SECRETS)}
    parts = [part for name in OF_A_LOGIN for part in told.get(name, "").split()]
    words = {word for word in (*told.values(), *parts) if len(word) >= SHORTEST_SECRET}
    return Redactor({f"SECRET_{number}": word for number, word in enumerate(sorted(words))})
