"""What every CI report contains: how a run ended, or that none began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.presentation.outcome import OUTCOMES, exit_in_words, next_command, outcome_in_words
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.presentation.wording import one_line, printable
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunReport

LONGEST_TEXT = 20_000
NOT_STARTED = "No run"


@dataclass(frozen=True)
class EndedRun:
    """``outcome`` is in words; ``following``: the command to continue with. ``folder`` is None if no run began."""

    exit_code: int
    outcome: str
    reason: str
    hint: str
    following: str
    folder: RunFolder | None
    progress: Progress
    totals: dict[str, float]
    redact: Callable[[str], str] = str

    @classmethod
    def of(cls, report: RunReport, progress: Progress, runs_dir: Path) -> EndedRun:
        folder = RunFolder(report.folder)
        return cls(
            report.exit_code,
            outcome_in_words(report.outcome),
            report.reason,
            report.hint,
            next_command(folder, runs_dir, report.exit_code),
            folder,
            progress,
            dict(report.totals),
            folder.redact,
        )

    @classmethod
    def without_run(cls, error: CodexMultiRoleError) -> EndedRun:
        """Create it for an ``error`` before, or instead of, the end of a run."""
        return cls(error.exit_code, NOT_STARTED, str(error), error.hint, "", None, Progress(), {})

    @property
    def name(self) -> str:
        """The run's id; empty without a run."""
        return self.folder.run_id if self.folder else ""

    @property
    def meaning(self) -> str:
        """``exit code 1: ended without reaching the goal``."""
        return f"exit code {exit_in_words(self.exit_code)}"

    @property
    def is_own_word(self) -> bool:
        """Whether ``outcome`` is one of our words, not a flow's own name for its end."""
        return self.outcome in OUTCOMES.values() or self.outcome == NOT_STARTED

    @property
    def headline(self) -> str:
        """``All cycles are used up: …`` on one line."""
        reason = self.line(self.reason, 500)
        return f"{one_line(self.outcome)}: {reason}" if reason else one_line(self.outcome)

    def line(self, text: object, limit: int = 200) -> str:
        """Apply `one_line` without secrets."""
        return one_line(self.redact(str(text)), limit)

    def text(self, text: str) -> str:
        """Return the end of several lines from a model or its tests, without secrets and control characters."""
        lines = (printable(line.expandtabs()) for line in self.redact(text)[-LONGEST_TEXT:].splitlines())
        return "\n".join(lines)

    def next_steps(self) -> Iterator[str]:
        """Yield the hint and the command to continue with."""
        if self.hint:
            yield self.line(self.hint, 500)
        if self.following:
            yield f"next: {self.following}"
