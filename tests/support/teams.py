"""Small teams for tests: a catalog, a playbook and a workspace in a folder, run on the real binary."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any, Unpack

import yaml

from codex_multi_role import RunOptions, RunReport, resume, run
from codex_multi_role.host.atomic import write_text
from codex_multi_role.option_keywords import ResumeKeywords
from tests.support.preloaded import started

Record = dict[str, Any]
LIMITS = {"idle_seconds": 20, "turn_seconds": 60}
WRITER: Record = {"behaviors": {"apply_files": True}}
"""The keys of a role whose files are applied."""
NEVER = {"fault": {"stall_seconds": 300}}
"""A play of a model that does not answer."""
ECHO: Record = {"json": {"summary": "did {{ (prompt | string).split('ITEM ')[1].split('.')[0] }}"}}
"""A play for `fan`: the summary names the item that was asked for."""


def say(summary: str = "fine", **more: object) -> Record:
    """A playbook entry: a handoff with this summary."""
    return {"json": {"summary": summary, **more}}


@dataclass
class TeamFolder:
    """``roles``: role name → its keys; ``plays``: role name → what the playbook answers, visit by visit."""

    folder: Path
    roles: dict[str, Record]
    plays: dict[str, list[Record]]
    more: Record = field(default_factory=dict)
    events: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workspace.mkdir(parents=True, exist_ok=True)
        (self.folder / "roles").mkdir(exist_ok=True)
        self.write_catalog()
        self.write_plays()

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def playbook(self) -> Path:
        return self.folder / "playbook.yaml"

    def write_catalog(self, **changed: Record) -> None:
        """Write ``roles``; what is ``changed`` replaces all keys of these roles."""
        self.roles |= changed
        roles = [{"name": name, "prompt_text": "Do it.", "limits": LIMITS, **keys} for name, keys in self.roles.items()]
        write_text(self.folder / "roles" / "catalog.yaml", yaml.safe_dump({"version": 1, "roles": roles}))

    def write_plays(self, **changed: list[Record]) -> None:
        """Write ``plays``; what is ``changed`` replaces those of these roles."""
        self.plays |= changed
        self.playbook.write_text(yaml.safe_dump({"name": "test", "roles": self.plays, **self.more}))

    def options(self, **changes: Any) -> RunOptions:
        """The options of a run of this team without tests and with one cycle; ``changes``: options that differ."""
        values: Record = {
            "goal": "reach it",
            "roles": self.folder / "roles",
            "runs_dir": self.runs,
            "workspace": self.workspace,
            "playbook": str(self.playbook),
            "run_tests": False,
            "cycles": 1,
        }
        return RunOptions(**{**values, **changes})

    def run(self, **changes: Any) -> RunReport:
        """In this process."""
        self.events.clear()
        return with_traceback(run(self.options(**changes), self.events.append))

    def resume(self, **changes: Unpack[ResumeKeywords]) -> RunReport:
        """Resume the latest run in this process."""
        self.events.clear()
        return with_traceback(resume("latest", runs_dir=self.runs, changes=changes, on_event=self.events.append))

    def command(self, *arguments: str) -> list[str]:
        """``codex-multi-role run`` with the same options, for a process of its own."""
        given = ["--goal", "reach it", "--roles", "roles", "--playbook", "playbook.yaml", "--workspace", "workspace"]
        return [sys.executable, "-m", "codex_multi_role", "run", *given, "--no-run-tests", "--cycles", "1", *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run `command` in the folder, without waiting for it."""
        pipe = subprocess.PIPE
        return started(self.command(*arguments), cwd=self.folder, stdout=pipe, stderr=pipe)

    def of_type(self, kind: str) -> list[Record]:
        """The events of that type in the last run or resume."""
        return [event for event in self.events if event["type"] == kind]

    def turns(self) -> list[tuple[str, int, str]]:
        """Role, number and status of every turn of the last run or resume that ended, in order."""
        session = dropwhile(lambda event: event["type"] != "run_started", self.events)  # first: ends of killed turns
        return [(each["role"], each["turn"], each["status"]) for each in session if each["type"] == "turn_ended"]

    def prompt(self, role: str, turn: int = 1) -> str:
        """What the role was asked in that turn of the latest run."""
        return (self.runs / f"latest/{role}/turn_{turn:03d}/prompt.txt").read_text()

    def handed(self, role: str, turn: int = 1) -> Any:
        """The handoff in that prompt."""
        return json.JSONDecoder().raw_decode(self.prompt(role, turn).split("INCOMING HANDOFF (JSON):\n")[1])[0]


def with_traceback(report: RunReport) -> RunReport:
    """The report; the traceback of a bug goes to standard error, where pytest shows it beside what failed by it."""
    if report.outcome == "internal_error":
        sys.stderr.write((report.folder / "traceback.txt").read_text())
    return report


def read(path: Path) -> Any:
    """The value in a JSON file."""
    return json.loads(path.read_text())


def read_lines(path: Path) -> list[Any]:
    """The values in a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def warnings(events: list[Record]) -> list[str]:
    """The messages of the warnings among ``events``."""
    return [event["message"] for event in events if event["type"] == "warning"]


def with_flow(team: TeamFolder, flow: Record, name: str = "own") -> TeamFolder:
    """Write the flow ``name``; the team."""
    folder = team.folder / "roles/flows"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, **flow}))
    return team


def solver(folder: Path, steps: list[Record], plays: list[Record] | None = None, **more: object) -> TeamFolder:
    """A team that can play these steps (`fan` gives one): by default each item is answered with `ECHO`."""
    team = TeamFolder(folder, {"solver": {}, "last": {}}, {"solver": plays or [ECHO] * 40, "last": [say()] * 5})
    return with_flow(team, {"steps": steps, **more})


def fan(items: object, **more: object) -> Record:
    """A step that asks the role ``solver`` once per item."""
    return {"id": "solve", "ask": "solver", "prompt": "ITEM {{ item }}.", "for_each": items, **more}
