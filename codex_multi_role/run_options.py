"""The options of a run, and its report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.host.database_url import check_database_url

LOCAL_ROLES = Path("roles")
"""The folder of a project's own roles, below the current folder."""
EVERY_RUN = "*"
"""In place of a run's id: every run. No id is like it."""
MOST_REPAIRS = 10
"""The maximum of ``repair_attempts``, because they bound the steps that an ask can record."""
REPLAY_MATCHES = ("strict", "nearest")
"""What a replay does with a prompt that differs: fail, or play the most similar recorded turn of the role."""
REPLAY_DIFFERS = "not as recorded: "
"""Prefix of every message about a difference in a replay, including refusals that Codex passes on."""
MAX_TEST_SECONDS = 86_400.0
"""The maximum of ``test_seconds``: a day."""
PROVIDER_ATTEMPTS = 3
"""How often one prompt is sent at most if the model provider or the Codex process fails."""
LIMITS = {"turns": "max_turns", "tokens": "max_tokens", "seconds": "max_seconds", "cost": "max_cost"}
"""The option that limits each amount. The total of a batch can limit the same amounts."""
FIRST_PAUSE_SECONDS = 1.0
"""Maximum pause before a prompt is sent the second time; the maximum doubles for each later pause."""
LONGEST_PAUSE_SECONDS = 60.0
"""Maximum pause before a prompt is sent again, even if the provider asks for a longer one."""


def limits_in(options: Mapping[str, Any]) -> dict[str, float]:
    """The limits that these options, by name, set for a run, by what they limit."""
    return {what: options[name] for what, name in LIMITS.items() if options.get(name) is not None}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of ``run``. Paths may be relative to the current folder; times are in seconds, costs in US dollars.

    An empty ``goal`` means the flow's own. ``reuse``: the ID of a run, or `EVERY_RUN` for all in ``runs_dir``: equal
    turns are taken over from there.
    """

    goal: str = ""
    cycles: int = 3
    flow: str = "cycles"
    inputs: Mapping[str, str] = field(default_factory=dict)
    workspace: Path = Path()
    worktree: bool = False
    branch: str | None = None
    workspace_copy: tuple[str, ...] = ()
    workspace_setup: str | None = None
    roles: Path | None = None
    runs_dir: Path = Path("runs")
    run_id: str | None = None
    model: str | None = None
    repair_attempts: int = 2
    run_tests: bool = True
    pytest_cmd: str | None = None
    python: Path | None = None
    test_sandbox: bool = True
    test_seconds: float = 300.0
    config: tuple[str, ...] = ()
    codex_bin: Path | None = None
    playbook: str | None = None
    record: Path | None = None
    replay: Path | None = None
    replay_match: str = "strict"
    max_turns: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    prices: Path | None = None
    max_processes: int | None = None
    yes: bool = False
    database_url: str | None = None
    reuse: str = ""

    def __post_init__(self) -> None:
        if self.cycles < 1:
            raise UsageError(f"cycles must be at least 1, not {self.cycles}")
        if self.branch and not self.worktree:
            raise UsageError("branch needs worktree", "The branch is created for the run's own worktree.")
        if not 0 <= self.repair_attempts <= MOST_REPAIRS:
            raise UsageError(f"repair attempts must be from 0 to {MOST_REPAIRS}, not {self.repair_attempts}")
        if self.replay and (self.record or self.playbook):
            other = "record" if self.record else "playbook"
            raise UsageError(f"replay and {other} exclude each other", "A replay takes its answers from the recording.")
        if self.replay_match not in REPLAY_MATCHES:
            raise UsageError(f"the match of a replay must be {' or '.join(REPLAY_MATCHES)}, not {self.replay_match}")
        if self.max_cost is not None and not 0 < self.max_cost < math.inf:
            raise UsageError(f"the maximum cost must be more than 0, not {self.max_cost:g}")
        if self.max_processes is not None and self.max_processes < 1:
            raise UsageError(f"processes at once must be at least 1, not {self.max_processes}")
        if self.database_url is not None:
            check_database_url(self.database_url)
        if not 0 < self.test_seconds <= MAX_TEST_SECONDS:
            limits = f"more than 0 and at most {MAX_TEST_SECONDS:.0f}"
            raise UsageError(f"the seconds for tests must be {limits}, not {self.test_seconds:g}")

    def as_record(self) -> dict[str, Any]:
        """JSON for ``run.json``, with absolute paths, so that the run can be resumed from any folder."""
        record = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}
        # Not resolved: the Python of a virtual environment is a symlink.
        return {**record, "python": str(self.python.absolute()) if self.python else None}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RunOptions:
        """The inverse of `as_record`."""
        known = {each.name: record[each.name] for each in fields(cls) if each.name in record}
        for name in ("workspace", "roles", "runs_dir", "python", "codex_bin", "record", "replay", "prices"):
            known[name] = Path(known[name]) if known.get(name) else None
        lists = {name: tuple(known.get(name, ())) for name in ("config", "workspace_copy")}
        return cls(**{**known, **lists})

    def changed(self, changes: Mapping[str, object]) -> RunOptions:
        """These options with some changed, by name. Raises `UsageError` for an unknown name."""
        unknown = set(changes) - {each.name for each in fields(self)}
        if unknown:
            raise UsageError(f"unknown option of a run: {', '.join(sorted(unknown))}")
        return replace(self, **changes)  # type: ignore[arg-type]  # checked by name


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value.resolve())
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class RunReport:
    """How a run ended. ``status``: succeeded, ended, failed, parked or interrupted; ``hint``: what to do next.

    ``result``: what it produced, ``{title, text?, file?, format, figures}`` as its flow declares it, or None.
    ``page``: its ``report.html``; None if it could not be written, for the reason in ``page_problem``.
    """

    run_id: str
    folder: Path
    status: str
    outcome: str
    reason: str
    exit_code: int
    hint: str
    totals: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    page: Path | None = None
    page_problem: str = ""
