"""One question to a person, and its answer."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.events import now

APPROVE, REJECT, OPTION = "approve", "reject", "option"
"""Answers after a time limit, besides an option; and the name of the chosen option among the values of an answer."""


@dataclass(frozen=True)
class Answer:
    """``by``: a user's name, ``--yes`` or ``time limit``. ``at``: ISO 8601, UTC. ``values``: those of the fields."""

    approved: bool
    comment: str
    by: str
    at: str
    option: str = ""
    values: Json = field(default_factory=dict)

    def as_output(self) -> Json:
        """What templates see of the step: the fields, the option, and the rest of the answer."""
        own = {"approved": self.approved, "comment": self.comment, "by": self.by, "at": self.at}
        return {**self.values, **({OPTION: self.option} if self.option else {}), **own}


@dataclass(frozen=True)
class Question:
    """``show``: what the decision is about. ``default`` is the answer after ``time_limit_seconds``.

    ``options``: one of them is chosen. ``fields``: the JSON Schemas of the values to give, by name.

    ``key`` is the asking unit's: ``<step>.<visit>``, with the item's index, below the calling step. A role that asks
    during its turn needs ``words``, the answer's comment; the key is then the turn's.
    """

    key: str
    question: str
    show: str
    asked_at: str
    time_limit_seconds: float | None
    default: str | None
    words: bool = False
    answer: Answer | None = None
    options: list[str] = field(default_factory=list)
    fields: dict[str, Json] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float | None:
        """Until the default applies, 0 from then on; None without a time limit. By the wall clock."""
        if self.time_limit_seconds is None:
            return None
        passed = datetime.now(UTC) - datetime.fromisoformat(self.asked_at)
        return max(0.0, self.time_limit_seconds - passed.total_seconds())

    @property
    def out_of_time(self) -> bool:
        return self.seconds_left == 0

    def changes(self, other: Question) -> list[str]:
        """In what they differ; without a difference, an answer to the other one counts for this one."""
        return [key for key in ("question", "show", "options", "fields") if getattr(self, key) != getattr(other, key)]


AskPerson = Callable[[Question, Callable[[], bool]], Answer | None]
"""Asks a person: ``ask(question, is_over)``. None: nobody answered, or ``is_over()`` ended the wait."""


def answer_of_person(approved: bool, comment: str, values: Mapping[str, object] | None = None) -> Answer:
    """The answer of this process's user, at the current time. ``values``: of fields, and the ``option``."""
    return Answer(approved, comment, user_name(), now(), values=dict(values or {}))


def user_name() -> str:
    """The user of this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # the user id has no name; which error depends on the version
        return f"user {os.getuid()}"
