"""Questions to a person: ``reviews/<key>.json``. The run writes them; the first answer from any process counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.atomic import make_folder, storage_errors, wait_for_lock, write_json
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.folder import RunFolder
from codex_multi_role.run_folder.typed_answers import Answer, Question, at_time_limit, complete

BY_KILL = "the end of its turn"
BY_CANCELLATION = "cancellation"
LOCK_SECONDS = 10.0
LOCK_PAUSE_SECONDS = 0.02


class Questions:
    """The questions of the run in ``run_folder``. Questions are stored without secrets, answers as given."""

    def __init__(self, run_folder: Path, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        self._folder = run_folder / "reviews"
        self._run = RunFolder(run_folder)

    def ask(self, question: Question, dropped: Callable[[str], object] = lambda told: None) -> Question:
        """Store the question. If it was asked before, it keeps its time and its answer. Raises `StorageError`.

        ``dropped`` gets an answer that does not count any more, because the question has changed.
        """
        question = replace(question, question=self._redact(question.question), show=self._redact(question.show))
        with self._locked():
            known = self.find(question.key)
            changes = question.changes(known) if known is not None else []
            if known is not None and not changes:
                question = replace(question, asked_at=known.asked_at, answer=known.answer)
            elif known is not None and known.answer is not None:
                what = f"{known.key}: its {' and '.join(changes)} changed"
                dropped(f"{what}, so the answer of {known.answer.by} no longer counts: {_in_json(known.answer)}")
            if question != known:
                self._write(question)
        return question

    def find(self, key: str) -> Question | None:
        """The question's current state; None if it was not asked, or its file is damaged."""
        return _read(self._path(key))

    def pending(self) -> list[Question]:
        """The questions without an answer, oldest first."""
        return [question for question in self.asked() if question.answer is None]

    def answered(self) -> list[Question]:
        """The questions with an answer, oldest first."""
        return [question for question in self.asked() if question.answer is not None]

    def settle(self, key: str, answer: Answer) -> Question:
        """Answer the question; returns it with the answer that counts: the first. Raises `StorageError`."""
        with self._locked():
            question = self.find(key)
            if question is None:
                raise StorageError(f"the question {self._path(key)} is gone", "Resume the run: it asks again.")
            if question.answer is None:
                question = replace(question, answer=answer)
                self._write(question)
        return question

    def settle_overdue(self) -> None:
        """Give the questions whose time has passed the answer that counts then. Raises `StorageError`."""
        for question in self.pending():
            if question.out_of_time and not question.words:
                self.settle(question.key, at_time_limit(question))

    def close_words(self) -> None:
        """Close questions from turns that a kill ended, because nobody waits for them. Raises `StorageError`."""
        for question in self.pending():
            if question.words:
                self.settle(question.key, Answer(False, "", BY_KILL, now()))

    def close_within(self, unit: str) -> set[str]:
        """Close questions of a unit that was cancelled; returns their keys. Raises `StorageError`."""
        closed = {each.key for each in self.pending() if f"{each.key}/".startswith(f"{unit}/")}
        for key in closed:
            self.settle(key, Answer(False, "", BY_CANCELLATION, now()))
        return closed

    def answer(self, key: str | None, answer: Answer) -> Question:
        """Answer the open question ``key``, or the only one.

        Raises `UsageError` if none or several are open, if it is already answered, or if its time is up;
        `StorageError`.
        """
        question = self._choose(key)
        if question.words and answer.approved and not answer.comment:
            raise UsageError(f"{question.key} needs an answer in words", "Give it with --comment.")
        if question.out_of_time:
            raise UsageError(
                f"the time to answer {question.key} is over; it counts as: {question.default}",
                f"`{self._run.command('resume')}` continues with it.",
            )
        answer = complete(question, answer)
        settled = self.settle(question.key, answer)
        if settled.answer is not answer:
            raise self._answered(settled)
        return settled

    def _choose(self, key: str | None) -> Question:
        asked = self.asked()
        pending = [each for each in asked if each.answer is None]
        if key is not None:
            question = next((each for each in asked if each.key == key), None)
            if question is None:
                raise self._unknown(key, [each.key for each in pending or asked])
            if question.answer is not None:
                raise self._answered(question)
            return question
        if not pending:
            raise (
                self._answered(asked[-1])
                if asked
                else UsageError(f"the run {self._run.run_id} is not waiting for an answer")
            )
        if len(pending) > 1:
            keys = ", ".join(each.key for each in pending)
            raise UsageError(
                f"the run {self._run.run_id} has {len(pending)} open questions: {keys}",
                f"Name one with --question; `{self._run.command('show')}` lists them.",
            )
        return pending[0]

    def _unknown(self, key: str, known: list[str]) -> UsageError:
        hint = f"Known: {', '.join(known)}." if known else ""
        return UsageError(f'the run {self._run.run_id} has no question "{key}"{did_you_mean(key, known)}', hint)

    def _answered(self, question: Question) -> UsageError:
        answer = question.answer
        assert answer is not None
        verdict = "approved" if answer.approved else "rejected"
        return UsageError(
            f"run {self._run.run_id} has no open question: {question.key} was {verdict} by {answer.by} at {answer.at}"
        )

    def asked(self) -> list[Question]:
        """All questions, oldest first."""
        found = map(_read, self._folder.rglob("*.json"))
        return sorted(filter(None, found), key=lambda question: (question.asked_at, question.key))

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _write(self, question: Question) -> None:
        path = self._path(question.key)
        make_folder(path.parent)  # the key of a called flow's unit has a "/"
        write_json(path, asdict(question))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        path = make_folder(self._folder) / ".lock"
        with storage_errors(path), path.open("a", encoding="utf-8") as file:
            wait_for_lock(file, LOCK_SECONDS, LOCK_PAUSE_SECONDS)
            yield


def _in_json(answer: Answer) -> str:
    """What was answered, without who and when."""
    given = answer.as_output().items()
    said = {name: each for name, each in given if name not in ("by", "at") and each not in ("", [])}
    return json.dumps(said, default=str)


def _read(path: Path) -> Question | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        answer = content.pop("answer")
        return Question(**content, answer=Answer(**answer) if answer else None)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None
