"""``--record``, ``--replay`` and ``--replay-match``: the options that replays add to a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from codex_multi_role.errors import UsageError
from codex_multi_role.option import Section, Use, option
from codex_multi_role.run_options import AddedOptions, RunOptions


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

    def check(self, options: RunOptions) -> None:
        """A replay takes no answers from elsewhere."""
        if self.replay and (self.record or options.answers.playbook):
            other = "record" if self.record else "playbook"
            raise UsageError(f"replay and {other} exclude each other", "A replay takes its answers from the recording.")
