"""What a queue needs to know about a run before any process works on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_options import limits_in

DEFAULT_QUEUE = "goals"
LABEL_SEPARATOR = "+"
MAX_PRIORITY = 50
RANKS = 20_000_000
"""How many ranks one priority has; one more than the highest."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A run to be queued. ``batch`` and ``line``: where its goal comes from, if from a goal file.

    ``options``: `RunOptions` fields, without paths of this machine. ``definitions``: its catalog, flows and playbook,
    as `archive_definitions` returned them. ``workspace``: a `WorkspaceSource` as JSON. ``priority``: the higher, the
    sooner, from -`MAX_PRIORITY` to `MAX_PRIORITY`. Only workers with all ``labels`` take it. ``changes``: of the
    options, since the run was parked.
    ``parent``: the run that had this one as an item, in an earlier version.
    """

    run_id: str
    options: Json
    definitions: Json
    workspace: Json
    batch: str | None = None
    line: int | None = None
    queue: str = DEFAULT_QUEUE
    labels: tuple[str, ...] = ()
    priority: int = 0
    changes: Json = field(default_factory=dict)
    parent: str = ""

    @property
    def goal(self) -> str:
        return str(self.options.get("goal", ""))

    @property
    def limits(self) -> Mapping[str, float]:
        """The most it may use, by what is limited, as its options are now: its batch reserves that."""
        return limits_in({**self.options, **self.changes})

    @property
    def full_queue(self) -> str:
        return queue_with_labels(self.queue, self.labels)

    def as_json(self) -> Json:
        """Its fields, and its ``limits`` for the database to add up."""
        return {**asdict(self), "limits": dict(self.limits)}

    @classmethod
    def of(cls, record: Json) -> RunRequest:
        """The inverse of `as_json`, also of an earlier version."""
        fields = {name: value for name, value in record.items() if name in cls.__dataclass_fields__}
        return cls(**{**fields, "labels": tuple(record["labels"])})


def queue_with_labels(queue: str, labels: Iterable[str]) -> str:
    """The DBOS queue of runs that need these labels. Raises `UsageError` for a name that cannot be part of one."""
    for name in (queue, *labels):
        if not name or not all(character.isalnum() or character in "._-" for character in name):
            raise UsageError(f'"{name}" cannot name a queue or a label', "Use letters, digits, '.', '_' and '-'.")
    return LABEL_SEPARATOR.join((queue, *sorted(set(labels))))


def can_take(full_queue: str, queues: Iterable[str], labels: Iterable[str]) -> bool:
    """Whether a worker for these queues, with these labels, takes runs from ``full_queue``."""
    queue, *needed = full_queue.split(LABEL_SEPARATOR)
    return queue in set(queues) and set(needed) <= set(labels)


def dequeue_order(priority: int, rank: int) -> int:
    """DBOS's priority, whose lowest number is dequeued first."""
    bounded = min(max(priority, -MAX_PRIORITY), MAX_PRIORITY)
    return (MAX_PRIORITY - bounded) * RANKS + min(rank, RANKS - 1) + 1


def row_values(request: RunRequest, rank: int) -> dict[str, Any]:
    """The request as columns of `tables.runs`."""
    return {
        "run_id": request.run_id,
        "batch": request.batch,
        "line": request.line,
        "goal": request.goal,
        "request": request.as_json(),
        "queue": request.full_queue,
        "priority": request.priority,
        "rank": rank,
    }
