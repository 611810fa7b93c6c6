"""Questions of a role to a person within its turn. If nobody can or wants to answer, the role continues at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from codex_multi_role.codex.approvals import Params
from codex_multi_role.run_folder import Answer, AskPerson, Question, Questions
from codex_multi_role.run_folder.events import ReviewAnswered, ReviewAsked, Warning, now
from codex_multi_role.steps.resources import RunResources

BY_NOBODY = "nobody"
SKIP = "skip"
LONGEST_QUESTION_TOLD = 200


class TurnQuestions:
    """The questions of one turn, one after the other; an answer may take ``patience_seconds``.

    ``seconds``: how long they have taken so far.
    """

    def __init__(self, run: RunResources, instance: str, turn: int, patience_seconds: float) -> None:
        self._run = run
        self._questions = Questions(run.services.folder.path, run.services.folder.redact)
        self._instance = instance
        self._place = f"{instance}.turn_{turn:03d}"
        self._patience_seconds = patience_seconds
        self._count = 0
        self.seconds = 0.0

    def put(self, params: Params) -> dict[str, str]:
        """The available answers, by question ID. Secrets are not asked for, because the run folder would store them."""
        asked = [each for each in params.get("questions", ()) if not each.get("isSecret")]
        answers = {str(each["id"]): self.ask(str(each["question"]), "\n".join(_options(each))) for each in asked}
        return {name: answer.comment for name, answer in answers.items() if answer and answer.approved}

    def ask(self, question: str, show: str) -> Answer | None:
        """A person's answer; None if nobody is present, is to be asked, or answered in time."""
        ask_person = None if self._run.settings.yes else self._run.services.ask_person
        if ask_person is None:
            shown = self._run.services.folder.redact(question)[:LONGEST_QUESTION_TOLD]
            self._run.services.events.publish(
                Warning(f"{self._instance} continues without an answer, because nobody is there: {shown}")
            )
            return None
        began = time.monotonic()
        try:
            answer = self._put(question, show, ask_person)
        finally:
            self.seconds += time.monotonic() - began
        return answer if answer.approved or answer.by != BY_NOBODY else None

    def _put(self, question: str, show: str, ask_person: AskPerson) -> Answer:
        self._count += 1
        asked = self._questions.ask(
            Question(
                key=f"{self._place}.{self._count}",
                question=question,
                show=show,
                asked_at=now(),
                time_limit_seconds=self._patience_seconds,
                default=SKIP,
                words=True,
            )
        )
        self._run.services.events.publish(ReviewAsked(asked.key, question))
        with self._run.services.clock.person(within_turn=True):
            given = ask_person(asked, lambda: self._is_over(asked))
        answer = self._questions.settle(asked.key, given or Answer(False, "", BY_NOBODY, now())).answer
        assert answer is not None
        self._run.services.events.publish(ReviewAnswered(asked.key, answer.approved, answer.comment, answer.by))
        return answer

    def _is_over(self, question: Question) -> bool:
        known = self._questions.find(question.key)
        return (
            self._run.progress.stopping.is_set()
            or question.out_of_time
            or (known is not None and known.answer is not None)
        )


def _options(asked: Mapping[str, Any]) -> Iterator[str]:
    for option in asked.get("options") or ():
        yield f"- {option['label']}: {option['description']}"
