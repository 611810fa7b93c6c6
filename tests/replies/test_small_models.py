"""Recorded answers of small models: what fits the author's schema is a handoff, and nothing else is taken."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.replies import Reply, read_reply, schema_problems
from codex_multi_role.replies.fitting import ERROR

SAMPLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "samples/small-model-answers.json").read_text(encoding="utf-8")
)


class Recorded(NamedTuple):
    """``judged``: how it was read when any text of ``error`` beside fields made it a refusal."""

    model: str
    bound_by: str
    role: str
    judged: str
    text: str

    def read(self) -> Reply:
        return _read(self.text, self.role)


@cache
def _read(text: str, role: str) -> Reply:
    return read_reply(text, SAMPLES["schemas"][role])


ANSWERS = [Recorded(*each) for each in SAMPLES["answers"]]
BOUND = [each for each in ANSWERS if each.bound_by != "no grammar"]


def _fits(answer: Recorded) -> bool:
    """Whether the text is JSON that fits the author's schema, apart from the ``error`` that its grammar required."""
    try:
        value = json.loads(answer.text)
    except ValueError:
        return False
    return not schema_problems({key: value[key] for key in value.keys() - {ERROR}}, SAMPLES["schemas"][answer.role])


def _taken(answers: list[Recorded]) -> Counter[tuple[str, str, bool]]:
    return Counter((each.model, each.judged, each.read().handoff is not None) for each in answers)


def test_every_bound_answer_that_fits_is_a_handoff() -> None:
    fitting = [each for each in BOUND if _fits(each)]
    assert _taken(fitting) == {
        ("qwen", "valid", True): 47,
        ("qwen", "refused", True): 25,
        ("smollm2", "refused", True): 23,
    }
    assert not any(each.read().refusal for each in fitting)


def test_handoff_of_a_bound_answer_has_the_authors_fields_as_written() -> None:
    for each in filter(_fits, BOUND):
        written = json.loads(each.text)
        written.pop(ERROR, None)
        assert each.read().handoff == written


def test_no_other_bound_answer_is_taken() -> None:
    assert _taken([each for each in BOUND if not _fits(each)]) == {("smollm2", "too long", False): 13}


def test_answers_without_a_grammar_are_read_as_before() -> None:
    free = [each for each in ANSWERS if each not in BOUND]
    assert [each.judged for each in free if each.read().refusal] == ["refused", "refused"]
    taken = Counter(each.judged for each in free if each.read().handoff is not None and not each.read().refusal)
    assert taken == {"repaired": 2}


TEAM: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "samples/shipped-team-answers.json").read_text(encoding="utf-8")
)
FORM = re.compile(r"<[a-z][^<>]*>", re.IGNORECASE)


class OfTeam(NamedTuple):
    """``when``: with the prompts `before` or `now`, or `bound` by the schema of now; ``goal``: a word of the goal."""

    when: str
    role: str
    goal: str
    text: str

    def rate(self) -> str:
        """`own`: it says something about the goal that neither its handoff nor the form says; `valid`, `no`."""
        reply = read_reply(self.text, self._schema)
        if reply.handoff is None or reply.refusal:
            return "no"
        said = [each for each in _texts(reply.handoff) if self.goal in each.casefold() and not FORM.search(each)]
        return "own" if set(said) - set(TEAM["given"][self.goal]) else "valid"

    @property
    def _schema(self) -> dict[str, Any]:
        """What the prompt described: now that of the shipped role."""
        if self.when == "before":
            return dict(TEAM["before"][self.role])
        return RoleSpecCatalog.load(packaged_roles()).role(self.role).output_schema or {}


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


def test_shipped_team_is_answered_with_its_handoffs() -> None:
    """Of 24 goals that no wording was chosen by, a role each: valid 0 before and 7 now."""
    rates = Counter(f"{each.when}: {each.rate()}" for each in (OfTeam(*answer) for answer in TEAM["answers"]))
    assert rates == TEAM["rates"]
