"""The step kind ``review``: a person's decision, recorded once. Until it is made, the run waits on disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from codex_multi_role.catalog.step_spec import Review
from codex_multi_role.errors import ReviewWaiting, RunInterrupted
from codex_multi_role.host.spelling import with_texts
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.schema_validation import schema_problems
from codex_multi_role.run_folder import Answer, Question, Questions
from codex_multi_role.run_folder.events import ReviewAnswered, ReviewAsked, Warning, now
from codex_multi_role.run_folder.past import decision_before, state_at
from codex_multi_role.run_folder.typed_answers import AFTER, BEFORE, REJECT, accept, at_time_limit, complete
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.unit import StepOutcome, Unit, as_text
from codex_multi_role.workspace.trees import line_of, text_of

BY_OPTION = "--yes"
MAX_DEFAULT_CHARACTERS = 100_000
"""Of a field's default in JSON: what a form can send, and a person edits."""


def review_step(run: RunResources, unit: Unit) -> StepOutcome:
    """Ask a person and wait; a rejection is a bad result, not a failure.

    Raises `ReviewWaiting` if nobody is present. That is never tolerated, because the answer is still to come.
    """
    review = unit.step.review or Review(question="")
    fields, after = _fields(run, unit, review), review.after.answer if review.after is not None else None
    question = Question(
        key=unit.key,
        question=_storable(unit.text("review")),
        show=_storable(as_text(unit.fill("show") or "")),
        asked_at=now(),
        time_limit_seconds=review.after.seconds if review.after is not None else None,
        default=after if all("default" in each for each in fields.values()) else after and REJECT,
        options=[*review.options],
        fields=fields,
    )
    with unit.record("review") as work:
        if work.is_due:
            work.result = decide(run, question)
    answer = work.result
    return StepOutcome(answer, bad="" if answer["approved"] else _rejected(answer))


def decide(run: RunResources, question: Question) -> Json:
    """A person's final answer: the fields, ``option`` if there are any, ``approved``, ``comment``, ``by``, ``at``.

    Raises `ReviewWaiting`, `RunInterrupted`.
    """
    run.after_baseline()
    questions = Questions(run.services.folder.path, run.services.folder.redact)
    publish = run.services.events.publish
    question = questions.ask(question, lambda told: publish(Warning(told)))
    if question.answer is None:
        publish(ReviewAsked(question.key, question.question))
        question = questions.settle(question.key, _wait(run, questions, question))
    answer = question.answer
    assert answer is not None
    answer = replace(answer, comments=_with_code(run, question, answer.comments))
    said = (answer.approved, answer.comment, answer.by, answer.option, dict(answer.values), answer.comments)
    publish(ReviewAnswered(question.key, *said))
    return answer.as_output()


def _fields(run: RunResources, unit: Unit, review: Review) -> dict[str, Json]:
    """The fields with their defaults filled in; without one that is too long or does not fit, but with a warning."""
    given = run.services.folder.redact.within(with_texts(unit.fill("defaults"), _storable))
    fields: dict[str, Json] = {name: {**schema, **given.get(name, {})} for name, schema in review.fields.items()}
    for name in given:
        is_long = len(json.dumps(given[name])) > MAX_DEFAULT_CHARACTERS
        if wrong := ["$: too long"] if is_long else schema_problems(given[name]["default"], review.fields[name]):
            run.services.events.publish(Warning(f"{unit.key}: default left out: {name}{wrong[0].removeprefix('$')}"))
            del fields[name]["default"]
    return fields


def _rejected(answer: Json) -> str:
    return f"rejected by {answer['by']}" + (f": {answer['comment']}" if answer["comment"] else "")


def _storable(text: str) -> str:
    """The text without characters that no file can hold, to read back the same."""
    return text.encode("utf-8", "replace").decode()


def answered_meanwhile(run: RunResources) -> bool:
    """Whether a question that the run waits for has been decided, so that the run can continue."""
    questions = map(Questions(run.services.folder.path).find, run.progress.waits_for)
    return any(each is not None and (each.answer is not None or each.out_of_time) for each in questions)


def _with_code(run: RunResources, question: Question, comments: Sequence[Json]) -> list[Json]:
    """Each with its line as the person saw it, which a turn may change before anybody reads the comment."""
    if not comments:
        return []
    folder, git = run.services.folder, run.snapshots.repository()
    points = {AFTER: question.key, BEFORE: decision_before(folder, question.key)}
    states = {side: state_at(folder, point) for side, point in points.items()}
    found = ((each, text_of(git, states[each["side"]], each["path"]) or "") for each in comments)
    return [{"code": line_of(text, each["line"]), **each} for each, text in found]


def _wait(run: RunResources, questions: Questions, question: Question) -> Answer:
    """The first answer from any source. Raises `ReviewWaiting`, `RunInterrupted`."""
    progress, ask_person = run.progress, run.services.ask_person

    def recorded_by_others() -> Answer | None:
        known = questions.find(question.key)
        return known.answer if known is not None else None

    def is_over() -> bool:
        """Whether an answer is no longer needed, or waited for."""
        is_ending = progress.stopping.is_set() or progress.pausing.is_set()
        return is_ending or question.out_of_time or recorded_by_others() is not None

    given = accept(question, BY_OPTION) if run.settings.yes else None
    if given is not None:
        return given
    if ask_person is not None and not question.out_of_time:
        with run.services.clock.person():
            given = ask_person(question, is_over)
        given = given and complete(question, given)
    if progress.stopping.is_set() and given is None:
        raise RunInterrupted
    given = given or recorded_by_others()
    if given is None and question.out_of_time:
        return at_time_limit(question)
    if given is None:
        progress.waits_for.add(question.key)
        raise _waiting(question)
    return given


def _waiting(question: Question) -> ReviewWaiting:
    limit = question.time_limit_seconds
    later = f" Without an answer within {limit:g} s, it counts as: {question.default}." if limit else ""
    return ReviewWaiting(
        f"{question.key} waits for a person: {question.question}",
        f"Once it is answered, the run continues when it is resumed.{later}",
    )
