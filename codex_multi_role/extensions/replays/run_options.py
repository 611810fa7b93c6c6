"""``--record``, ``--replay`` and ``--replay-match``: the options that replays add to a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from codex_multi_role.errors import UsageError
from codex_multi_role.option import Section, Use, option
from codex_multi_role.run_options import AddedOptions, RunOptions

RERUN = "rerun"
"""The key in ``forked_from`` of a run that takes over equal turns of the other one."""
NO_LONGER = "it no longer takes over turns of other runs, as requested at its start: only a rerun takes over any"


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(AddedOptions):
    """What answers in place of a model."""

    section: ClassVar = Section.WITHOUT_A_MODEL
    ended: ClassVar = {"reuse": "`codex-multi-role rerun RUN` repeats a run, and takes over its equal turns"}

    record: Path | None = option(
        None,
        "Record every exchange with the model in FILE, without secrets, for --replay.",
        "FILE",
        path="new file",
        use=Use.LOCAL | Use.TRUST,
    )
    replay: Path | None = option(
        None,
        "Take the answers from a recording instead of a model, and also goal, flow, inputs and cycles.",
        "FILE",
        path="file",
        use=Use.LOCAL,
    )
    replay_match: Literal["strict", "nearest"] = option(
        "strict",
        "If a prompt differs from the recorded one: fail, or replay the most similar turn of the role.",
        use=Use.RESUME | Use.FORK | Use.LOCAL,
        is_set_once=True,
    )

    @staticmethod
    def bring_up_to_date(record: Mapping[str, Any], /) -> str:
        """A run that took over turns of the one that it was forked from is a rerun; others take over no more."""
        if (origin := record.get("forked_from")) and origin["run_id"] == record["options"]["reuse"]:
            origin[RERUN] = True
        return NO_LONGER if record["options"]["reuse"] == "*" else ""

    def check(self, options: RunOptions) -> None:
        """A replay takes no answers from elsewhere."""
        if self.replay and (self.record or options.answers.playbook):
            other = "record" if self.record else "playbook"
            raise UsageError(f"replay and {other} exclude each other", "A replay takes its answers from the recording.")
