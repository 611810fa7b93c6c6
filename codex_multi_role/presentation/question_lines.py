"""A question to a person and its subject, as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator

from codex_multi_role.presentation.wording import duration, one_line, printable
from codex_multi_role.run_folder import Question

LINES_SHOWN = 200


def question_lines(question: Question) -> Iterator[str]:
    """Format the question; what a model wrote in it cannot control the terminal."""
    yield f"review {question.key}: {one_line(question.question, 1000)}"
    lines = question.show.expandtabs().splitlines()
    yield from (f"  {printable(line)}" for line in lines[:LINES_SHOWN])
    if len(lines) > LINES_SHOWN:
        yield f"  ... and {len(lines) - LINES_SHOWN} more lines, see reviews/{question.key}.json in the run folder"
    if question.seconds_left is not None:
        yield f"In {duration(question.seconds_left)} the answer is: {question.default}."
