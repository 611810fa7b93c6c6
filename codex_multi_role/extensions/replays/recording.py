"""The file of a recorded run: one JSON object per line, to be read by people and kept in git.

``recording``   the first line: the run's flow, goal, inputs and options, and the initial state of its workspace
``exchange``    one request to a model and its answer: who asked (unit, role, visit, repair, attempt), which request of
                the turn it was (turn, kind, step), the prompt (at step 0) and what `answers.reduced` keeps
``ended``       the last line: how the run ended, every handoff, and a hash of every file that it changed

A line is written at once and whole, so what a kill leaves is usable up to there.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from codex_multi_role.errors import DefinitionError, StorageError, UsageError
from codex_multi_role.extensions.replays.answers import BROKEN, ENDS
from codex_multi_role.lifecycle.model_providers import PLAYBOOK_MODEL
from codex_multi_role.playbook.request import AnswerKey, first_problem

Line = dict[str, Any]

VERSION = 1
OWNER_ONLY = 0o600
PLAYABLE = (*ENDS.values(), BROKEN)
TURN, COMPACTION = "turn", "compaction"


class _Checked(BaseModel):
    """The fields of a line that are used; others are allowed."""

    model_config = ConfigDict(strict=True)


class _Header(_Checked):
    run: str
    goal: str
    flow: str
    inputs: dict[str, Any]
    cycles: int
    repair_attempts: int
    run_tests: bool
    workspace: str


class _Answered(_Checked):
    key: str
    question: str
    approved: bool
    comment: str
    option: str = ""
    values: dict[str, Any] = {}


class _HandedOver(_Checked):
    role: str
    unit: str
    handoff: Any


class _Ended(_Checked):
    status: str
    outcome: str
    exit_code: int
    answers: list[_Answered]
    handoffs: list[_HandedOver]
    files: dict[str, str | None]


@dataclass(frozen=True)
class RecordedTurn:
    """One recorded turn: the answers to its requests, by kind and step; ``exchanges`` is never empty."""

    unit: str
    ask: AnswerKey
    prompt: str
    exchanges: Mapping[tuple[str, int], Line]

    @property
    def finished(self) -> bool:
        """Whether its last answer is complete, unlike that of a killed turn."""
        return list(self.exchanges.values())[-1].get("end") == "completed"

    def answer(self, kind: str, step: int) -> Line | None:
        return self.exchanges.get((kind, step))


@dataclass(frozen=True)
class Recording:
    """A recorded run. ``ended`` is None if the file ends before the run did."""

    path: Path
    header: Line
    turns: tuple[RecordedTurn, ...]
    ended: Line | None
    models: Mapping[str, str]
    providers: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.path.name

    def model(self, role: str) -> str:
        """The model that the role asked when the recording was made."""
        return self.models.get(role, PLAYBOOK_MODEL)

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Raises `DefinitionError` for a file that is not a recording, `UsageError` for one that cannot be read."""
        lines = list(_lines(path))
        if not lines or lines[0].get("type") != "recording":
            raise DefinitionError(f"{path}:1:1: not a recording", "`run --record FILE` writes one.")
        if lines[0].get("version") != VERSION:
            message = f"{path}: version: it is {lines[0].get('version')!r}, this program reads {VERSION}"
            raise DefinitionError(message, "Record it again.")
        exchanges = [line for line in lines if line.get("type") == "exchange"]
        ended = lines[-1] if lines[-1].get("type") == "ended" else None
        _require(path, _Header, lines[0])
        if ended is not None:
            _require(path, _Ended, ended)
        try:
            return cls(
                path=path,
                header=lines[0],
                turns=tuple(_turns(exchanges)),
                ended=ended,
                models={line["role"]: line["model"] for line in reversed(exchanges) if line.get("model")},
                providers={line["role"]: line["provider"] for line in reversed(exchanges)},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DefinitionError(f"{path}: an exchange lacks or misspells {error}", "Record it again.") from error


def _lines(path: Path) -> Iterator[Line]:
    try:
        with path.open(encoding="utf-8") as file:
            lines = file.readlines()  # str.splitlines would also split at line ends within a text
    except OSError as error:
        raise UsageError(f"the recording {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DefinitionError(f"{path}: this is not text: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line.rstrip("\n"))
        except json.JSONDecodeError as error:
            if number == len(lines):
                return  # cut short by a kill
            raise DefinitionError(f"{path}:{number}:{error.colno}: not valid JSON: {error.msg}") from error
        yield value if isinstance(value, dict) else {}


def _require(path: Path, shape: type[_Checked], line: Line) -> None:
    try:
        shape.model_validate(line)
    except ValidationError as error:
        raise DefinitionError(f"{path}: {line['type']}: {first_problem(error)}", "Record it again.") from error


def _turns(exchanges: list[Line]) -> Iterator[RecordedTurn]:
    """In the order in which they started. Of a request that was sent again, the last answer counts."""
    by_turn: dict[str, list[Line]] = {}
    for line in exchanges:
        by_turn.setdefault(line["turn"], []).append(line)
    for lines in by_turn.values():
        first = lines[0]
        ask = AnswerKey(str(first["role"]), int(first["visit"]), int(first["repair"]), int(first["attempt"]))
        prompt = next((str(line["prompt"]) for line in lines if "prompt" in line), "")
        answers = {(str(line["kind"]), int(line["step"])): _checked(line) for line in lines}
        yield RecordedTurn(str(first.get("unit", "")), ask, prompt, answers)


def _checked(line: Line) -> Line:
    """Raises KeyError, TypeError or ValueError for an answer that could not be played."""
    if "items" not in line:
        return {**line, "status": int(line["status"]), "headers": dict(line["headers"]), "text": str(line["text"])}
    if line["end"] not in PLAYABLE or not all(isinstance(item, dict) for item in line["items"]):
        raise ValueError(f"an answer: end {line['end']!r}")
    return {**line, "response": dict(line.get("response", {}))}


class RecordingFile:
    """Appends lines, each through ``clean``; threads may share it. ``problem``: why it stopped, or empty.

    Write errors are reported there and not raised, because a model's answer is worth more than its recording.
    """

    def __init__(self, path: Path, clean: Callable[[Line], Line]) -> None:
        self.path = path
        self.problem = ""
        self._clean = clean
        self._lock = threading.Lock()  # waits: for one line to a file

    def begin(self, header: Line) -> None:
        """Create the file, readable only by its owner, or continue the one of an earlier session of the run.

        Raises `UsageError` if another file is there, `StorageError`.
        """
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
            begun = self.path.stat().st_size > 0  # a kill may have come before the first line
        except OSError as error:
            raise StorageError(f"the recording {self.path} cannot be written: {error.strerror}") from error
        if begun:
            self.go_on(header["run"])
        else:
            self.add({"type": "recording", "version": VERSION, **header})

    def go_on(self, run_id: str) -> None:
        """Continue the file of the run ``run_id``, which an earlier session created. Raises `UsageError`."""
        with suppress(UsageError):
            if Recording.load(self.path).header.get("run") == run_id:
                return
        raise UsageError(f"{self.path} is not a recording of this run")

    def add(self, line: Line) -> None:
        text = json.dumps(self._clean(line), ensure_ascii=False) + "\n"
        with self._lock:
            if self.problem:
                return
            try:
                self._append(text.encode("utf-8", "replace"))
            except OSError as error:
                self.fail(str(error.strerror))

    def fail(self, why: str) -> None:
        self.problem = f"the recording {self.path} is not complete: {why}"

    def _append(self, data: bytes) -> None:
        with self.path.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":  # a line that a kill cut short
                    file.truncate(end := self.path.read_bytes().rfind(b"\n") + 1)
            file.seek(end)
            file.write(data)
