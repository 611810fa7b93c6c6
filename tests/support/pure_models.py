"""Runs whose model is a pure function of what it is shown, without Codex: equal inputs get equal answers, no others do.

The engine, the steps, threads, snapshots and takeovers are the real ones; only the process behind a thread is not. The
model keeps a key of everything that it was shown for each turn, which is how a test knows what depends on what.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from codex_multi_role import RunOptions
from codex_multi_role.codex.fleet import Fleet, Member
from codex_multi_role.codex.notifications import ItemCompleted, ItemStarted
from codex_multi_role.codex.running_turn import Observer
from codex_multi_role.codex.thread import RoleThread
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn_outcome import TurnOutcome, TurnRecorder, TurnRequest
from codex_multi_role.engine import CallableFlows, DurableRun
from codex_multi_role.errors import CodexRefused
from codex_multi_role.flow import new_state
from codex_multi_role.lifecycle.assembly import idle_parts, with_first_protected
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.members import Members
from codex_multi_role.lifecycle.model_providers import ModelProviders
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import RERUN
from codex_multi_role.workspace.manifest import Manifest
from tests.support.scripted import Journal

LOOKS, WRITES, SUBMITS = re.compile(r"\bLOOK\b"), re.compile(r"\bWRITE (\S+)"), re.compile(r"\bSUBMIT (\S+)")
"""What a role's prompt lets the model do: run a command, write a file by a command, submit a file."""
SECONDS = re.compile(r'(\\"seconds\\": )[\d.]+')
"""How long a check of an incoming handoff took, which differs in every run."""


def key_of(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def files_of(folder: Path) -> dict[str, bytes]:
    """The files below ``folder`` with their content."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


def _seen(folder: Path) -> dict[str, tuple[str, bool]]:
    """The files with their content, and whether they are executable."""
    return {name: (content.hex(), os.access(folder / name, os.X_OK)) for name, content in files_of(folder).items()}


@dataclass
class PureModel:
    """``threads``: the turns that each one remembers, of all runs; ``shown``: the keys of the current run's turns."""

    threads: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    def fork(self, thread: str, last_turn: str) -> str:
        turns = self.threads[thread]
        place = [turn for turn, _ in turns].index(last_turn)
        return self.start(turns[: place + 1])

    def start(self, turns: list[tuple[str, str]]) -> str:
        thread = str(uuid.uuid4())
        self.threads[thread] = list(turns)
        return thread

    def answer(self, thread: str, shown: object) -> tuple[str, str]:
        """A new turn on ``thread``: its id and the key of what the model was shown, its memory included."""
        turn, key = str(uuid.uuid4()), key_of([shown, [known for _, known in self.threads[thread]]])
        self.threads[thread].append((turn, key))
        self.shown.append(key)
        return turn, key


@dataclass
class _Threads:
    """The part of the protocol that is about threads."""

    model: PureModel

    def request(self, method: str, params: Mapping[str, Any], _: float) -> Json:
        thread = str(params.get("threadId"))
        if method == "thread/start":
            thread = self.model.start([])
        elif thread not in self.model.threads:
            raise CodexRefused("no such thread", 0)
        elif method == "thread/fork":
            thread = self.model.fork(thread, params["lastTurnId"])
        return {"thread": {"id": thread}, "model": params.get("model", "its own")}


class PureClient:
    """What the steps use of a `RoleClient`."""

    broken = ""

    def __init__(self, model: PureModel, member: Member, names: Mapping[str, str]) -> None:
        self._model, self._member, self._names = model, member, names
        transport = cast(AppServerTransport, _Threads(model))
        self.thread = RoleThread(transport, member.thread, member.inherited)
        self.thread.open(member.thread_id)

    def use_thread(self, thread_id: str | None, folder: str) -> None:
        self.thread.use(thread_id, folder)

    def wake(self) -> None:
        pass

    def run_turn(self, request: TurnRequest, _: object, observe: Observer, *__: object) -> TurnOutcome:
        self.thread.used = True
        folder, recorder = Path(self.thread.settings.folder), TurnRecorder()
        writes = WRITES.search(request.prompt)
        looks = writes or LOOKS.search(request.prompt)
        if looks:
            self._observe(observe, recorder, {"type": "commandExecution", "id": "c", "command": "look"})
        seen = _seen(folder) if looks else {}
        asked = request.params("") | {"responsesapiClientMetadata": None}  # no model is shown it
        turn, key = self._model.answer(self.thread.id, [self._setting(), self._named(asked), seen])
        if writes:
            (folder / writes[1]).write_text(f"{key[:12]}\n")
        self._observe(observe, recorder, {"type": "agentMessage", "id": "m", "text": self._text(request, key)})
        self.thread.forgot = False
        return replace(recorder.outcome("completed", "", ""), turn_id=turn)

    @staticmethod
    def _observe(observe: Observer, recorder: TurnRecorder, item: Json) -> None:
        for event in (ItemStarted(item), ItemCompleted(item)):
            recorder.add(event)
            observe(event)

    def _text(self, request: TurnRequest, key: str) -> str:
        """A handoff; or text that needs a repair turn, for one in six prompts."""
        if int(key[:6], 16) % 6 == 0 and request.metadata["multi_role_repair"] == "0":
            return "not JSON"
        handoff = {
            "summary": key[:8],
            "said": "ok" if int(key[:4], 16) % 2 else "no",
            "items": [key[8], key[9]][: 1 + int(key[10], 16) % 2],
        }
        submits = SUBMITS.search(request.prompt)
        files = {"files": [{"path": submits[1], "content": key[:12]}]} if submits else {}
        return json.dumps({**handoff, **files})

    def _setting(self) -> object:
        """All that the process and its thread were set up with."""
        argv = [each for each in self._member.launch.argv if not each.startswith("shell_environment_policy.set.")]
        tools = [tool.as_json() for tool in self.thread.settings.tools]
        skills = [files_of(Path(folder)) for folder in self.thread.settings.skill_folders]
        return self._named([argv, self.thread.settings.params(), tools, str(skills)])

    def _named(self, value: object) -> object:
        text = json.dumps(value, default=str)
        for path, name in self._names.items():
            text = text.replace(path, name)
        return SECONDS.sub(r"\g<1>0", text)


class PureFleet:
    """What the steps use of a `Fleet`."""

    def __init__(self, members: Members, model: PureModel, names: Mapping[str, str]) -> None:
        self._members, self._model, self._names = members, model, names
        self._inherited: dict[str, str] = {}
        self._clients: dict[str, PureClient] = {}

    def inherit(self, thread_id: str, last_turn: str) -> None:
        self._inherited[thread_id] = last_turn

    @contextmanager
    def borrowed(self, instance: str) -> Iterator[PureClient]:
        yield self.client(instance)

    def client(self, instance: str) -> PureClient:
        if instance not in self._clients:
            member = replace(self._members._member(instance), inherited=self._inherited)
            self._clients[instance] = PureClient(self._model, member, self._names)
        return self._clients[instance]


@dataclass(frozen=True)
class PureRun:
    """``shown``: the keys of the turns that were asked; ``files``: the workspace afterwards; ``end``: how it ended."""

    run_id: str
    shown: list[str]
    files: dict[str, bytes]
    end: str
    prompts: list[str]


def play(options: RunOptions, model: PureModel, repeats: str = "") -> PureRun:
    """Do a run with the model in this process, with its journal in memory. ``repeats``: the id of another one."""
    definitions = load_definitions(options)
    folder = RunFolder.create(options.place.runs_dir)
    origin = {"forked_from": {"run_id": repeats, RERUN: True}} if repeats else {}
    folder.write_record(
        {"run_id": folder.run_id, "workspace": str(definitions.workspace), "options": options.as_record(), **origin}
    )
    project = definitions.workspace.parent
    copies = Manifest(folder.worktrees_path).place
    names = {
        str(folder.path): "<run>",
        str(copies): "<copies>",
        str(definitions.workspace): "<workspace>",
        str(project): "<project>",
    }
    model.shown = []
    with idle_parts(definitions, folder) as idle:
        parts = with_first_protected(idle)
        fleet = PureFleet(Members(definitions, folder, ModelProviders()), model, names)
        run = replace(parts, services=replace(parts.services, fleet=cast(Fleet, fleet)))
        state = new_state(definitions.flow, options.goal, definitions.inputs, options.cycles)
        durable = DurableRun(CallableFlows(definitions.flows, cache(definitions.bound)), state, run)
        durable.work(Journal().slots())
    ending = durable.ending.result(0)
    prompts = [path.read_text() for path in sorted(folder.path.glob("*/turn_*/prompt.txt"))]
    end = f"{ending.outcome}: {ending.reason} {ending.details}"
    for path, name in names.items():
        end = end.replace(path, name)
    return PureRun(
        folder.run_id,
        model.shown,
        files_of(definitions.workspace),
        end,
        prompts,
    )
