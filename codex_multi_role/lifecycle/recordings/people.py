"""People's answers in a recorded run, given again in its replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from codex_multi_role.playbook.normalization import PathNames
from codex_multi_role.playbook.recording import Recording
from codex_multi_role.run_folder import Answer, AskPerson, Question, Questions
from codex_multi_role.run_folder.events import now

BY_RECORDING = "recording"


def answers_of(run_folder: Path) -> list[dict[str, Any]]:
    """Every answered question of the run, whoever answered it, in the order of their keys."""
    answered = sorted(Questions(run_folder).answered(), key=lambda question: question.key)
    return [
        {"key": each.key, "question": each.question, "approved": each.answer.approved, "comment": each.answer.comment}
        for each in answered
        if each.answer is not None
    ]


def as_recorded(recording: Recording, places: PathNames, otherwise: AskPerson | None) -> AskPerson | None:
    """Answers as recorded for the question's key, otherwise for its text; asks ``otherwise`` for any other.

    ``places``: the paths of the run that asks now.
    """
    known = places.placed((recording.ended or {}).get("answers", []))
    if not known:
        return otherwise

    def ask(question: Question, is_over: Callable[[], bool]) -> Answer | None:
        same = [each for each in known if each["key"] == question.key]
        found = same or [each for each in known if each["question"] == question.question]
        if found:
            return Answer(bool(found[0]["approved"]), str(found[0]["comment"]), BY_RECORDING, now())
        return otherwise(question, is_over) if otherwise is not None else None

    return ask
