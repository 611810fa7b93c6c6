"""The embedded model with a recording as its script: it answers as the real model did. No model is asked.

The request identifies the turn to play, and the number of answers the turn has had identifies the next one. A turn
never outlives this process, so a resumed run needs no stored state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from http import HTTPStatus
from typing import cast

from codex_multi_role.codex.failures import REPLAY_DIFFERS
from codex_multi_role.errors import CodexMultiRoleError, UsageError
from codex_multi_role.extensions.replays.answers import BROKEN, TEXT, events_of
from codex_multi_role.extensions.replays.normalization import PathNames, normalize
from codex_multi_role.extensions.replays.recording import COMPACTION, Line, RecordedTurn, Recording
from codex_multi_role.playbook.loopback import END_OF_STREAM, JSON, LoopbackHandler, LoopbackServer
from codex_multi_role.playbook.request import Asked, read_asked
from codex_multi_role.playbook.responses import encode

Differs = Callable[[str, str, bool], None]
"""Called with a difference, its diff, and whether the turn is played anyway."""
NEAREST = "nearest"
MOST_LINES = 2_000
"""Maximum lines of a prompt in the search for the nearest one: more would take seconds."""


class ReplayServer(LoopbackServer):
    """Serves one recording. Raises `CodexUnavailable` if the loopback interface gives no port."""

    def __init__(self, recording: Recording, match: str, places: PathNames, differs: Differs) -> None:
        self.places = places
        self._recording, self._match, self._differs = recording, match, differs
        self._playing: dict[str, RecordedTurn] = {}
        self._steps: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()  # waits: for memory only
        super().__init__("replay", _ReplayHandler)

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def answer(self, asked: Asked) -> Line:
        """The recorded answer. Raises `UsageError` if none is recorded."""
        turn = self._turn(asked)
        with self._lock:
            step = self._steps.get((asked.turn_id, asked.kind), 0)
            answer = turn.answer(asked.kind, step)
            if answer is not None and answer["end"] == "completed":
                self._steps[asked.turn_id, asked.kind] = step + 1
        if answer is None:
            what = f"{asked.kind} {step + 1}" if asked.kind == COMPACTION else f"step {step + 1}"
            raise self._refusal(
                MatchedTurn(None, f"role {asked.ask.role}, visit {asked.ask.visit}: no recorded {what}")
            )
        return self.places.placed(answer)  # type: ignore[no-any-return]

    def _turn(self, asked: Asked) -> RecordedTurn:
        """The recorded turn to play for this one. A request for a summary has no prompt of its own to compare."""
        with self._lock:
            if asked.turn_id in self._playing:
                return self._playing[asked.turn_id]
        found = self._found(asked)
        if found.turn is None:
            raise self._refusal(found)
        with self._lock:
            if asked.kind != COMPACTION:
                self._playing[asked.turn_id] = found.turn
        if found.difference:
            self._differs(found.difference, found.diff, True)
        return found.turn

    def _found(self, asked: Asked) -> MatchedTurn:
        turns = self._recording.turns
        if asked.kind == COMPACTION:
            same = [each for each in turns if (each.unit, each.ask) == (asked.unit, asked.ask)]
            with_one = [each for each in same if each.answer(COMPACTION, 0)]
            if with_one:
                return MatchedTurn(with_one[-1])
        return find_turn(turns, asked, self.places.named(asked.prompt), self._match)

    def _refusal(self, found: MatchedTurn) -> UsageError:
        self._differs(found.difference, found.diff, False)
        return UsageError(f"{REPLAY_DIFFERS}{found.difference}{_first_difference(found.diff)}")


def _first_difference(diff: str) -> str:
    """The first differing lines, for a one-line message."""
    lines = [line for line in diff.splitlines()[2:] if line.startswith(("-", "+"))][:2]
    return f" ({' '.join(line[:200] for line in lines)})" if lines else ""


class _ReplayHandler(LoopbackHandler):
    server_version = "codex-multi-role-replay"
    sys_version = "(no model is asked)"

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        if not self.admit() or (body := self.body()) is None:
            return
        try:
            answer = cast(ReplayServer, self.server).answer(read_asked(body))
        except CodexMultiRoleError as error:
            # Not 400: Codex reports that as class "other", which looks retryable.
            self.refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        else:
            self._play(answer)

    def _play(self, answer: Line) -> None:
        if "text" in answer and "items" not in answer:
            self._text(answer)
            return
        self.begin_stream()
        for event in events_of(answer):
            self.chunk(encode(event))
        if answer["end"] == BROKEN:
            self.close_connection = True
        else:
            self.chunk(END_OF_STREAM)

    def _text(self, answer: Line) -> None:
        body = str(answer["text"]).encode("utf-8", "replace")
        headers = {"Content-Type": JSON, **{name.title(): value for name, value in answer["headers"].items()}}
        if answer["end"] == TEXT:
            self.answer(int(answer["status"]), body, headers)
        else:
            self.begin(int(answer["status"]), {"Content-Length": str(len(body) + 1), **headers})
            self.wfile.write(body)
            self.close_connection = True


@dataclass(frozen=True)
class MatchedTurn:
    """The turn to play, or None. ``difference`` from the recording: one line; ``diff``: of the prompts."""

    turn: RecordedTurn | None
    difference: str = ""
    diff: str = ""


def find_turn(turns: Sequence[RecordedTurn], asked: Asked, prompt: str, match: str) -> MatchedTurn:
    """The asker's recorded turn if its prompt is the same; otherwise none (strict) or the most similar of its role.

    ``prompt`` has names for paths, like the recorded ones.
    """
    same_ask = [turn for turn in turns if (turn.unit, turn.ask) == (asked.unit, asked.ask)]
    same = [turn for turn in same_ask if normalize(turn.prompt) == normalize(prompt)]
    if same:
        return MatchedTurn(max(same, key=lambda turn: turn.finished))
    candidates = same_ask or _of_role(turns, asked)
    if not candidates:
        return MatchedTurn(None, f"{_who(asked)}: this role is not in the recording")
    nearest = match == NEAREST
    close = max(_of_role(turns, asked) if nearest else candidates, key=lambda turn: _similarity(turn, asked, prompt))
    said = "its prompt differs from the recorded one" if same_ask else "this turn is not recorded"
    return MatchedTurn(close if nearest else None, f"{_who(asked)}: {said}", _diff(close.prompt, prompt))


def _of_role(turns: Sequence[RecordedTurn], asked: Asked) -> list[RecordedTurn]:
    return [turn for turn in turns if turn.ask.role == asked.ask.role]


def _similarity(turn: RecordedTurn, asked: Asked, prompt: str) -> tuple[float, bool, bool, bool]:
    """The prompts' similarity; then whether the ask is the same, is of the same kind, and was answered."""
    recorded, now = (normalize(text).splitlines()[:MOST_LINES] for text in (turn.prompt, prompt))
    ratio = round(SequenceMatcher(None, recorded, now, autojunk=False).ratio(), 3)
    same = (turn.unit, turn.ask) == (asked.unit, asked.ask)
    return ratio, same, turn.ask.repair == asked.ask.repair, turn.finished


def _who(asked: Asked) -> str:
    ask = asked.ask
    parts = [f"role {ask.role}", f"visit {ask.visit}"]
    parts += [f"repair {ask.repair}"] if ask.repair else []
    parts += [f"attempt {ask.attempt}"] if ask.attempt > 1 else []
    return ", ".join([*parts, *([f"unit {asked.unit}"] if asked.unit else [])])


def _diff(recorded: str, now: str) -> str:
    """A unified diff of the normalized texts; empty if they are equal."""
    before, after = (normalize(text).splitlines() for text in (recorded, now))
    return "\n".join(unified_diff(before, after, "recorded", "now", lineterm=""))
