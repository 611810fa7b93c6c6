"""One turn's folder, ``<role>/turn_<nnn>/``, with everything said and done in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.host.atomic import storage_errors, write_json, write_text
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.reading.json_files import read_json, read_object
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import RunFolder, instance_in, new_numbered, number_of

PREFIX = "turn_"
KILLED = {"status": "interrupted", "outcome": "killed", "reason": "the run was killed during this turn"}
ANALYSIS = "analysis.md"
ANALYSIS_PATH = "analysis_md_path"
"""The key of a handoff with the path of its analysis."""
INHERITED = "inherited"
"""In ``turn.json`` of a fork: a turn of the run that it was forked from."""
REUSED = "reused_from"
"""In ``turn.json``: the turn of an earlier run, ``{run_id, role, turn}``, that this one was taken over from."""


@dataclass(frozen=True)
class TurnFolder:
    """Writes the artifacts of one turn; a started turn never shares its folder with another.

    Texts for people are stored through ``redact``; the handoff, the patches and ``turn.json`` are exact.
    """

    path: Path
    redact: Redactor

    @classmethod
    def create(cls, run: RunFolder, role: str) -> TurnFolder:
        return cls(new_numbered(run.role_folder(role), PREFIX), run.redact)

    @classmethod
    def of(cls, run: RunFolder, role: str, number: int) -> TurnFolder:
        return cls(run.role_path(role) / f"{PREFIX}{number:03d}", run.redact)

    @classmethod
    def latest(cls, run: RunFolder, instance: str) -> TurnFolder | None:
        """The instance's latest turn, None before the first."""
        numbers = [int(path.name.removeprefix(PREFIX)) for path in run.role_path(instance).glob(f"{PREFIX}*")]
        return cls.of(run, instance, max(numbers)) if numbers else None

    @property
    def number(self) -> int:
        return number_of(self.path, PREFIX)

    @property
    def prompt_path(self) -> Path:
        """The file with what the role was asked."""
        return self.path / "prompt.txt"

    @property
    def patch_path(self) -> Path:
        """The file for the turn's changes."""
        return self.path / "changes.patch"

    @property
    def undone_path(self) -> Path:
        """The file for the changes of an interrupted turn, which were reverted."""
        return self.path / "undone.patch"

    @property
    def protected_path(self) -> Path:
        """The file for the turn's changes of protected files, which were reverted."""
        return self.path / "protected.patch"

    def begin(self, prompt: str, details: Mapping[str, Any]) -> None:
        """Record the prompt and the status ``running`` before anything is sent."""
        write_text(self.prompt_path, self.redact(prompt))
        self.write_running(details)

    def write_running(self, details: Mapping[str, Any]) -> None:
        """Record what is known of the turn while it runs, which is what a kill leaves of it."""
        self.write_result({"status": "running", "outcome": "", "reason": "", **details})

    def write_long_prompt(self, prompt: str) -> Path:
        """Store a prompt that is too long to be sent whole, for the role to read; returns its path."""
        path = self.path / "prompt_whole.txt"
        write_text(path, self.redact(prompt))
        return path.absolute()

    def write_answer(self, assistant_text: str, delta_text: str, items_text: str) -> None:
        write_text(self.path / "assistant_text.txt", self.redact(assistant_text))
        write_text(self.path / "delta_text.txt", self.redact(delta_text))
        write_text(self.path / "items_text.md", self.redact(items_text))

    def write_handoff(self, handoff: dict[str, Any]) -> dict[str, Any]:
        """Store the handoff; long prose in ``analysis_md`` moves to ``analysis.md``. Returns what was stored."""
        analysis = handoff.get("analysis_md")
        if isinstance(analysis, str):
            write_text(self.path / ANALYSIS, self.redact(analysis))
            handoff = {key: value for key, value in handoff.items() if key != "analysis_md"}
            handoff[ANALYSIS_PATH] = self._analysis_reference
        write_json(self.path / "handoff.json", handoff)
        return handoff

    @property
    def _analysis_reference(self) -> str:
        """The analysis's path in the stored handoff: relative to the run folder, which may be moved."""
        return str(self.path.relative_to(self.path.parents[1]) / ANALYSIS)

    def passed_on(self, handoff: dict[str, Any]) -> dict[str, Any]:
        """The turn's ``handoff`` for other roles, with its analysis's absolute path, because they work elsewhere."""
        if handoff.get(ANALYSIS_PATH) != self._analysis_reference:
            return handoff
        return {**handoff, ANALYSIS_PATH: str((self.path / ANALYSIS).absolute())}

    def write_files(self, applied: list[dict[str, Any]]) -> None:
        write_json(self.path / "applied_files.json", applied)

    def files(self) -> list[dict[str, Any]]:
        """``applied_files.json``, or an empty list if the turn submitted no files."""
        return read_json(self.path / "applied_files.json") or []

    def write_changes(self, before: str, after: str) -> None:
        """Store between which two states of the workspace, among the run's snapshots, ``changes.patch`` leads."""
        write_json(self.path / "changes.json", {"before": before, "after": after})

    def changes(self) -> tuple[str, str] | None:
        """``changes.json``, or None if the turn changed nothing."""
        stored = read_object(self.path / "changes.json")
        return (str(stored["before"]), str(stored["after"])) if {"before", "after"} <= stored.keys() else None

    def add_tool_call(self, line: str) -> None:
        """Append a call, a JSON object, to ``tool_calls.jsonl``."""
        path = self.path / "tool_calls.jsonl"
        with storage_errors(path), path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{self.redact(line)}\n")

    def write_kept(self, kept: Mapping[str, Any]) -> None:
        """Store what the called tools keep for the handoff."""
        write_json(self.path / "kept.json", kept)

    def kept(self) -> dict[str, Any]:
        """``kept.json``, or an empty object if no tool kept anything."""
        return read_object(self.path / "kept.json")

    def write_result(self, result: Mapping[str, Any]) -> None:
        write_json(self.path / "turn.json", result)

    def result(self) -> dict[str, Any]:
        """``turn.json``, or an empty object if a kill came before it was written."""
        return read_object(self.path / "turn.json")

    @property
    def unfinished(self) -> bool:
        """Whether its end is not recorded yet."""
        return bool(self.result().get("status", "running") == "running")

    def handoff(self) -> Any:  # noqa: ANN401 - whatever JSON the role left
        """``handoff.json``, or None if it is missing."""
        return read_json(self.path / "handoff.json")


def list_turns(run: RunFolder) -> Iterator[tuple[str, TurnFolder]]:
    """Every ``(role, turn)`` of the run, by role and number."""
    paths = (path for path in run.path.glob(f"*/{PREFIX}*") if number_of(path, PREFIX))
    turns = ((instance_in(path.parent.name), path) for path in paths)
    for instance, path in sorted(turns, key=lambda turn: (turn[0], number_of(turn[1], PREFIX))):
        yield instance, TurnFolder(path, run.redact)


def own_turns(run: RunFolder) -> Iterator[tuple[str, dict[str, Any]]]:
    """``(role, turn.json)`` of the turns that this run paid for, without those that are from another run."""
    results = ((role, turn.result()) for role, turn in list_turns(run))
    return ((role, result) for role, result in results if not _is_from_another_run(result))


def _is_from_another_run(result: Mapping[str, Any]) -> bool:
    return bool(result.get(INHERITED) or result.get(REUSED))


def origin_in_words(origin: Mapping[str, Any]) -> str:
    """``RUN/ROLE/TURN`` of what `REUSED` names; empty for an empty one."""
    return "{run_id}/{role}/{turn}".format(**origin) if origin else ""


def totals_of(run: RunFolder, seconds: float = 0.0) -> dict[str, Any]:
    """The run's totals: ``{turns, repairs, input_tokens, output_tokens, seconds}``.

    And as in `Cost`: ``cost``, None if any turn has no price, and ``unpriced_turns``.

    ``seconds``: the known working time, which is at least that of its latest turn.
    """
    turns = [turn for _, turn in own_turns(run)]
    return {
        "turns": len(turns),
        "repairs": sum(turn.get("repair_of") is not None for turn in turns),
        "input_tokens": sum(turn.get("tokens", {}).get("input", 0) for turn in turns),
        "output_tokens": sum(turn.get("tokens", {}).get("output", 0) for turn in turns),
        **sum(map(Cost.of_turn, turns), Cost()).as_json(),
        "seconds": max([round(seconds, 3), *(float(turn.get("worked_seconds", 0.0)) for turn in turns)]),
    }


def inherited_threads(run: RunFolder) -> dict[str, str]:
    """The threads of turns from other runs: by id, Codex's id of the last answered one of them on it.

    It is empty for a thread without one. Unanswered turns do not count, because Codex does not know one that it died
    in.
    """
    found: dict[str, str] = {}
    for _, turn in list_turns(run):
        result = turn.result()
        thread = result.get("thread_id")
        if thread and _is_from_another_run(result):
            found[thread] = result["turn_id"] if result.get("recorded") else found.get(thread, "")
    return found


def started_turns(run: RunFolder) -> dict[int, TurnFolder]:
    """The turns that this run started, by place in the journal; of several the finished one, or the last."""
    found: dict[int, TurnFolder] = {}
    finished = set()
    for _, turn in list_turns(run):
        result = turn.result()
        place = result.get("journal_step")
        if place is not None and place not in finished and not result.get(INHERITED):
            found[place] = turn
            finished |= {place} if result.get("recorded") else set()
    return found


def close_unfinished(run: RunFolder) -> int:
    """Mark turns that a kill left ``running`` as interrupted; returns their number."""
    unfinished = [turn for _, turn in list_turns(run) if turn.unfinished]
    for turn in unfinished:
        turn.write_result({**turn.result(), **KILLED})
    return len(unfinished)
