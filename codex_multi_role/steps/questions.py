"""What a role asks a person within its turn. Where nobody is, or nobody wants to, it is told at once to go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from codex_multi_role.codex.approvals import AskUser, Params
from codex_multi_role.run_folder import Answer, AskPerson, Question, Questions
from codex_multi_role.run_folder.events import ReviewAnswered, ReviewAsked, now
from codex_multi_role.steps.resources import RunResources

BY_NOBODY = "nobody"
SKIP = "skip"


def asks_of_turn(run: RunResources, instance: str, turn: int, patience_seconds: float) -> AskUser | None:
    """What asks for the role in this turn; None where there is nobody to ask, or nobody is to be asked."""
    if run.ask_person is None or run.yes:
        return None
    return _TurnQuestions(run, run.ask_person, f"{instance}.turn_{turn:03d}", patience_seconds).put


class _TurnQuestions:
    """The questions of one turn, one after the other; each has an answer for ``patience_seconds`` to come."""

    def __init__(self, run: RunResources, ask_person: AskPerson, place: str, patience_seconds: float) -> None:
        self._run = run
        self._ask_person = ask_person
        self._questions = Questions(run.folder.path)
        self._place = place
        self._patience_seconds = patience_seconds
        self._count = 0

    def put(self, params: Params) -> dict[str, str]:
        """The answers there are, by question id. A secret is not asked for: it would lie in the run folder."""
        asked = [each for each in params.get("questions", ()) if not each.get("isSecret")]
        answers = {str(each["id"]): self._put(each) for each in asked}
        return {name: words for name, words in answers.items() if words}

    def _put(self, asked: Mapping[str, Any]) -> str:
        self._count += 1
        question = self._questions.ask(
            Question(
                key=f"{self._place}.{self._count}",
                question=str(asked["question"]),
                show="\n".join(_options(asked)),
                asked_at=now(),
                time_limit_seconds=self._patience_seconds,
                default=SKIP,
                words=True,
            )
        )
        self._run.events.publish(ReviewAsked(question.key, question.question))
        given = self._ask_person(question, lambda: self._is_over(question))
        answer = self._questions.settle(question.key, given or Answer(False, "", BY_NOBODY, now())).answer
        assert answer is not None
        self._run.events.publish(ReviewAnswered(question.key, answer.approved, answer.comment, answer.by))
        return answer.comment if answer.approved else ""

    def _is_over(self, question: Question) -> bool:
        known = self._questions.find(question.key)
        return self._run.stopping.is_set() or question.out_of_time or (known is not None and known.answer is not None)


def _options(asked: Mapping[str, Any]) -> Iterator[str]:
    for option in asked.get("options") or ():
        yield f"- {option['label']}: {option['description']}"
