"""The turns and check results of an earlier run that its rerun can take over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codex_multi_role.codex.usage import tokens_by_model
from codex_multi_role.extensions.replays.normalization import PathNames
from codex_multi_role.extensions.replays.reuse.role_inputs import content_digest
from codex_multi_role.extensions.replays.reuse.timed_results import MEASURED, TimedResult
from codex_multi_role.extensions.replays.reuse.turn_inputs import TurnBasis
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder, TurnFolder, list_turns
from codex_multi_role.steps.turn_record import TurnResult
from codex_multi_role.workspace.manifest import Manifest

IN_RUN_FOLDER = re.compile(r"<<(run folder|copies)>>/([\w./+@-]*[\w+@-])")


def path_names(run: RunFolder, workspace: Path) -> PathNames:
    """Names for the paths in which two runs of the same team differ."""
    return PathNames({"workspace": workspace, **_folders_of(run)})


def _folders_of(run: RunFolder) -> dict[str, Path]:
    return {"run folder": run.path, "copies": Manifest(run.worktrees_path).place}


def files_named_in(text: str, run: RunFolder) -> list[tuple[str, str]]:
    """The paths in folders of the run that ``text`` names, with digests of what is there: a role may read it."""
    folders = _folders_of(run)
    names = sorted(set(IN_RUN_FOLDER.findall(text)))
    return [(name, content_digest(folders[folder] / name)) for folder, name in names]


@dataclass(frozen=True)
class EarlierTurn:
    """An answered turn of an earlier ``run``; ``result``: its ``turn.json``."""

    run: EarlierRun
    instance: str
    folder: TurnFolder
    result: Json
    basis: TurnBasis
    recorded: TurnResult

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
    def tokens_by_model(self) -> Mapping[str, Mapping[str, int]]:
        """These tokens, by the model that used them: a provider may change it, and sub-agents may have others."""
        there: Mapping[str, Mapping[str, int]] | None = self.result.get("reused_tokens_by_model")
        return there or tokens_by_model({**self.result, "tokens": self.tokens})

    @property
    def origin(self) -> Json:
        return {"run_id": self.run.folder.run_id, "role": self.instance, "turn": self.folder.number}


@dataclass(frozen=True)
class EarlierRun:
    """``workspace``: where it worked, besides in copies of that."""

    folder: RunFolder
    workspace: Path

    @cached_property
    def names(self) -> PathNames:
        return path_names(self.folder, self.workspace)

    @cached_property
    def _measured(self) -> list[TimedResult]:
        # A check in a called flow has a folder below that of the call.
        paths = [*self.folder.path.glob(f"checks/**/{MEASURED}"), *self.folder.path.glob(f"tests/*/{MEASURED}")]
        return list(filter(None, map(TimedResult.read, paths)))

    @property
    def repositories(self) -> list[Path]:
        """Those with the states of its workspace and of the copies."""
        return [self.folder.snapshots_path, *self.folder.worktrees_path.glob("*/snapshots.git")]

    @cached_property
    def turns(self) -> list[EarlierTurn]:
        """Those that were answered and recorded with what they depend on."""
        found = []
        for instance, folder in list_turns(self.folder):
            result = folder.result()
            basis, recorded = TurnBasis.read(result), TurnResult.read(result)
            if basis is not None and recorded is not None:
                found.append(EarlierTurn(self, instance, folder, result, basis, recorded))
        return found

    def turns_with(self, inputs: Mapping[str, str], position: str) -> list[EarlierTurn]:
        """The turns with the same inputs; those at the same position come first."""
        found = (turn for turn in self.turns if turn.basis.inputs == inputs)
        return sorted(found, key=lambda turn: turn.basis.position != position)

    def same_result(self, wanted: TimedResult) -> Json | None:
        """The result of the same check on the same files that differs in times and paths alone; None without one."""
        same = (each for each in self._measured if each.named(self.names).without_times == wanted.without_times)
        return next((each.result for each in same), None)
