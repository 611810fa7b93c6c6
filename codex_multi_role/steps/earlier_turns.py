"""The turns and check results of earlier runs that a run can take over."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.playbook.normalization import PathNames, normalize
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder, TurnFolder, list_turns
from codex_multi_role.steps.turn_inputs import TurnBasis, digest


def path_names(run: RunFolder, workspace: Path) -> PathNames:
    """Names for the paths in which two runs of the same team differ."""
    return PathNames({"workspace": workspace, "run folder": run.path})


@dataclass(frozen=True)
class EarlierTurn:
    """An answered turn of an earlier ``run``; ``result``: its ``turn.json``."""

    run: EarlierRun
    instance: str
    folder: TurnFolder
    result: Json
    basis: TurnBasis

    @property
    def turn_id(self) -> str:
        """Codex's id, the same for all runs that took the turn over."""
        return str(self.result["turn_id"])

    @property
    def tokens(self) -> Mapping[str, int]:
        """What it cost the run that asked it."""
        found: Mapping[str, int] = self.result.get("reused_tokens") or self.result["tokens"]
        return found

    @property
    def origin(self) -> Json:
        return {"run_id": self.run.folder.run_id, "role": self.instance, "turn": self.folder.number}


@dataclass(frozen=True)
class RecordedWork:
    """What the journal of a run has at one position."""

    name: str
    output: Json


@dataclass(frozen=True)
class EarlierRun:
    """``read_journal`` returns all recorded work by position; it may raise `CodexMultiRoleError`."""

    folder: RunFolder
    workspace: Path
    read_journal: Callable[[RunFolder], Mapping[int, RecordedWork]]

    @cached_property
    def names(self) -> PathNames:
        return path_names(self.folder, self.workspace)

    @cached_property
    def work(self) -> Mapping[int, RecordedWork]:
        with suppress(CodexMultiRoleError):
            return self.read_journal(self.folder)
        return {}

    @property
    def repositories(self) -> list[Path]:
        """Those with the states of its workspace and of the copies."""
        return [self.folder.snapshots_path, *self.folder.worktrees_path.glob("*/snapshots.git")]

    def turns(self) -> Iterator[EarlierTurn]:
        """Those that were answered and recorded with what they depend on."""
        for instance, folder in list_turns(self.folder):
            result = folder.result()
            basis = TurnBasis.read(result)
            if basis is not None and result.get("recorded"):
                yield EarlierTurn(self, instance, folder, result, basis)

    def same_result(self, name: str, place: int, result: Json) -> Json | None:
        """The recorded result of ``name`` that differs from ``result`` in times and paths alone; None without one."""
        known = self.work
        places = [place, *(each for each in known if each != place)]
        wanted = normalize(_text(result))
        same_name = (known[each].output for each in places if each in known and known[each].name == name)
        return next((each for each in same_name if normalize(_text(self.names.named(each))) == wanted), None)


class EarlierTurns:
    """All turns of ``runs``, by their inputs and by their position; read when the first one is looked up."""

    def __init__(self, runs: Callable[[], Iterable[EarlierRun]]) -> None:
        self._runs = runs

    @cached_property
    def _all(self) -> list[EarlierTurn]:
        return [turn for run in self._runs() for turn in run.turns()]

    @cached_property
    def _by_inputs(self) -> Mapping[str, list[EarlierTurn]]:
        found: dict[str, list[EarlierTurn]] = defaultdict(list)
        for turn in self._all:
            found[digest(turn.basis.inputs)].append(turn)
        return found

    def with_inputs(self, inputs: Mapping[str, str], position: str) -> list[EarlierTurn]:
        """The turns with the same inputs; those at the same position come first."""
        found = self._by_inputs.get(digest(inputs), [])
        return sorted(found, key=lambda turn: turn.basis.position != position)

    def at(self, position: str) -> EarlierTurn | None:
        """The latest turn at the same position, whatever its inputs."""
        return next((turn for turn in reversed(self._all) if turn.basis.position == position), None)

    def __iter__(self) -> Iterator[EarlierTurn]:
        return iter(self._all)


def _text(result: Json) -> str:
    return json.dumps(result, sort_keys=True, ensure_ascii=False)
