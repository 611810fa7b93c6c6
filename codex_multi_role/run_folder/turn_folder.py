"""One turn's folder, ``<role>/turn_<nnn>/``: everything that was said and done in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.redaction import Redactor
from codex_multi_role.run_folder.atomic import storage_errors, write_bytes, write_json, write_text
from codex_multi_role.run_folder.folder import RunFolder, new_numbered, number_of
from codex_multi_role.run_folder.reading import read_json, read_object

PREFIX = "turn_"
KILLED = {"status": "interrupted", "outcome": "killed", "reason": "the run was killed during this turn"}
ANALYSIS = "analysis.md"
ANALYSIS_PATH = "analysis_md_path"
"""The key of a handoff that says where its analysis is."""
INHERITED = "inherited"
"""In ``turn.json`` of a fork: a turn that the run it was forked from took."""


@dataclass(frozen=True)
class TurnFolder:
    """Writes the artifacts of one turn; a turn that is begun never shares its folder with another.

    What is for people to read is stored through ``redact``; the handoff, the patches and ``turn.json`` are exact.
    """

    path: Path
    redact: Redactor

    @classmethod
    def create(cls, run: RunFolder, role: str) -> TurnFolder:
        return cls(new_numbered(run.role_folder(role), PREFIX), run.redact)

    @classmethod
    def of(cls, run: RunFolder, role: str, number: int) -> TurnFolder:
        return cls(run.path / role / f"{PREFIX}{number:03d}", run.redact)

    @classmethod
    def latest(cls, run: RunFolder, instance: str) -> TurnFolder | None:
        """The turn the instance took last, if it took any."""
        numbers = [int(path.name.removeprefix(PREFIX)) for path in (run.path / instance).glob(f"{PREFIX}*")]
        return cls.of(run, instance, max(numbers)) if numbers else None

    @property
    def number(self) -> int:
        return number_of(self.path, PREFIX)

    @property
    def patch_path(self) -> Path:
        """Where what the turn changed belongs."""
        return self.path / "changes.patch"

    @property
    def undone_path(self) -> Path:
        """Where that belongs which the turn had changed when it was cut short, and was taken back."""
        return self.path / "undone.patch"

    def begin(self, prompt: str, details: Mapping[str, Any]) -> None:
        """Record the prompt and that the turn is running, before anything is sent."""
        write_text(self.path / "prompt.txt", self.redact(prompt))
        self.write_result({"status": "running", "outcome": "", "reason": "", **details})

    def write_long_prompt(self, prompt: str) -> Path:
        """Keep a prompt that is too long to be sent whole, for the role to read; returns where."""
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
        """How the stored handoff names the analysis: relative to the run folder, which may be moved."""
        return str(self.path.relative_to(self.path.parents[1]) / ANALYSIS)

    def passed_on(self, handoff: dict[str, Any]) -> dict[str, Any]:
        """The turn's ``handoff`` for other roles, with an absolute path to its analysis: they work elsewhere."""
        if handoff.get(ANALYSIS_PATH) != self._analysis_reference:
            return handoff
        return {**handoff, ANALYSIS_PATH: str((self.path / ANALYSIS).absolute())}

    def write_files(self, applied: list[dict[str, Any]]) -> None:
        write_json(self.path / "applied_files.json", applied)

    def files(self) -> list[dict[str, Any]]:
        """``applied_files.json``, or an empty list where the turn handed no files in."""
        return read_json(self.path / "applied_files.json") or []

    def add_tool_call(self, line: str) -> None:
        """One more line of ``tool_calls.jsonl``: a call as a JSON object."""
        path = self.path / "tool_calls.jsonl"
        with storage_errors(path), path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{self.redact(line)}\n")

    def write_kept(self, kept: Mapping[str, Any]) -> None:
        """What the tools that were called keep for the handoff."""
        write_json(self.path / "kept.json", kept)

    def kept(self) -> dict[str, Any]:
        """``kept.json``, or an empty object where no tool kept anything."""
        return read_object(self.path / "kept.json")

    def write_protected(self, patch: bytes) -> None:
        """What the turn had changed of the files it must leave as they are, and was put back."""
        write_bytes(self.path / "protected.patch", patch)

    def write_result(self, result: Mapping[str, Any]) -> None:
        write_json(self.path / "turn.json", result)

    def result(self) -> dict[str, Any]:
        """``turn.json``, or an empty object where a kill came before it was written."""
        return read_object(self.path / "turn.json")

    @property
    def unfinished(self) -> bool:
        """Whether nobody has recorded yet how it ended."""
        return bool(self.result().get("status", "running") == "running")

    def handoff(self) -> Any:  # noqa: ANN401 - whatever JSON the role left
        """``handoff.json``, or None where there is none."""
        return read_json(self.path / "handoff.json")


def list_turns(run: RunFolder) -> Iterator[tuple[str, TurnFolder]]:
    """Every ``(role, turn)`` of the run, by role and number."""
    paths = (path for path in run.path.glob(f"*/{PREFIX}*") if number_of(path, PREFIX))
    for path in sorted(paths, key=lambda path: (path.parent.name, number_of(path, PREFIX))):
        yield path.parent.name, TurnFolder(path, run.redact)


def own_turns(run: RunFolder) -> Iterator[tuple[str, dict[str, Any]]]:
    """``(role, turn.json)`` of the turns that this run paid for: not of those that a fork inherited."""
    results = ((role, turn.result()) for role, turn in list_turns(run))
    return ((role, result) for role, result in results if not result.get(INHERITED))


def totals_of(run: RunFolder, seconds: float = 0.0) -> dict[str, float]:
    """What the run itself came to: ``{turns, repairs, input_tokens, output_tokens, seconds}``.

    ``seconds``: how long it is known to have been worked on; it was so up to its latest turn at least.
    """
    turns = [turn for _, turn in own_turns(run)]
    return {
        "turns": len(turns),
        "repairs": sum(turn.get("repair_of") is not None for turn in turns),
        "input_tokens": sum(turn.get("tokens", {}).get("input", 0) for turn in turns),
        "output_tokens": sum(turn.get("tokens", {}).get("output", 0) for turn in turns),
        "seconds": max([round(seconds, 3), *(float(turn.get("worked_seconds", 0.0)) for turn in turns)]),
    }


def inherited_threads(run: RunFolder) -> dict[str, str]:
    """The threads of the turns that a fork inherited: by id, Codex's id of the last such turn on it that was answered.

    It is empty for a thread without one. Others are no end for a thread: Codex does not know one that it died in.
    """
    found: dict[str, str] = {}
    for _, turn in list_turns(run):
        result = turn.result()
        thread = result.get("thread_id")
        if thread and result.get(INHERITED):
            found[thread] = result["turn_id"] if result.get("recorded") else found.get(thread, "")
    return found


def begun_turns(run: RunFolder) -> dict[int, TurnFolder]:
    """The turns that this run began, by their places in the journal; of several the finished one, or the last."""
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
    """Mark turns that a kill left ``running`` as interrupted; returns how many there were."""
    unfinished = [turn for _, turn in list_turns(run) if turn.unfinished]
    for turn in unfinished:
        turn.write_result({**turn.result(), **KILLED})
    return len(unfinished)
