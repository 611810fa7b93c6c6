"""A run's `Course` drawn with rich: what it is for, how far it is, its steps and tasks as a tree, tests, questions."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType  # noqa: TID251 - made to clean its texts
from rich.segment import Segment
from rich.text import Text

from codex_multi_role.cli.tables import STYLES
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import (
    BAD,
    BUSY,
    IDLE,
    WARN,
    answer_commands,
    outcome_in_words,
    playbook_in_words,
    tone_of,
)
from codex_multi_role.presentation.pieces import RUNNING
from codex_multi_role.presentation.tree import GLYPHS, UNLIMITED, Row, Tree, cut, fit
from codex_multi_role.presentation.wording import (
    BEFORE,
    amounts,
    duration,
    judged,
    one_line,
    seconds_between,
    verdict,
    verdict_before,
)
from codex_multi_role.run_folder import RunFolder

LATEST_WARNINGS = 3
RULER = Console(file=io.StringIO())


class DrawingConsole(Console):
    """A terminal that no text in a drawing controls."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n"), segment.style)


def render(
    course: Course,
    now: str,
    width: int,
    height: int = UNLIMITED,
    *,
    questions: bool = True,
    glyphs: dict[str, str] = GLYPHS,
) -> RenderableType:
    """Draw the whole view at ``now`` (an event's ``at``) for a terminal of ``width`` columns and ``height`` lines.

    ``questions``: whether to show them, because they are not asked elsewhere on this terminal.
    """
    above: list[RenderableType] = [_title(course, width)]
    if course.forked:
        above.append(Text(cut(one_line(course.forked, 500), width), style="dim"))
    if course.started.playbook:
        above.append(Text(playbook_in_words(course.started.playbook), style="yellow"))
    above += [_progress_line(course, now, width), *_budget_line(course, now, width), *_awaited(course, now, width)]
    asked = _questions(course, width) if questions else []
    below = [*_tests_line(course, width), *asked, *_warnings(course, width)]
    lines_left = height - len(RULER.render_lines(Group(*above, *below), RULER.options.update_width(width)))
    rows = fit(list(Tree(course, now, width).rows()), max(1, lines_left))
    return Group(*above, *(_drawn(row, width, glyphs) for row in rows), *below)


def _drawn(row: Row, width: int, glyphs: dict[str, str]) -> Text:
    glyph = (f"{glyphs.get(row.tone, ' ')} ", STYLES.get(row.tone, ""))
    words = cut(row.words, width - len(row.indent) - len(glyph[0]))
    return Text.assemble(row.indent, glyph, (words, STYLES[IDLE] if row.tone == IDLE else ""))


def _title(course: Course, width: int) -> Text:
    run = course.started
    if not run.run_id:
        return Text("starting", style="bold")
    words = cut(f"run {run.run_id}  flow {one_line(run.flow)}  {one_line(run.goal)}", width)
    text = Text(words)
    text.stylize("bold", 0, len(f"run {run.run_id}"))
    return text


def _progress_line(course: Course, now: str, width: int) -> Text:
    where = course.where
    if course.ended is not None:
        where = ", ".join(filter(None, (outcome_in_words(course.ended.outcome), where)))
    elapsed = f"{duration(seconds_between(course.started.at, now))} elapsed" if course.started.at else ""
    return Text(cut("  ".join(filter(None, (where, elapsed))), width))


def _budget_line(course: Course, now: str, width: int) -> list[Text]:
    left = [] if course.ended else amounts(course.left(now))
    return [Text(cut(f"left: {', '.join(left)}", width))] if left else []


def _awaited(course: Course, now: str, width: int) -> list[Text]:
    """What the first turn waits for."""
    before = course.baseline
    if before is None or before.status != RUNNING or course.ended is not None:
        return []
    last = f" ({duration(before.seconds)} last time)" if before.seconds else ""
    running = f"waiting for the {BEFORE}: {duration(seconds_between(before.at, now))}{last}; skip: --no-baseline"
    return [Text(cut(running, width), style=STYLES[BUSY])]


def _questions(course: Course, width: int) -> list[Text]:
    asked = [
        Text(cut(one_line(f"review {key}: {words}"), width), style=STYLES[WARN])
        for key, words in course.questions.items()
    ]
    if asked:
        folder = RunFolder(course.folder or Path(course.started.folder))
        commands = answer_commands(folder, list(course.questions))
        asked.append(Text(f"  answer: {commands}"))
    return asked


def _warnings(course: Course, width: int) -> list[Text]:
    return [
        Text(cut(f"warning: {one_line(words)}", width), style=STYLES[WARN])
        for words in course.warnings[-LATEST_WARNINGS:]
    ]


def _tests_line(course: Course, width: int) -> list[Text]:
    told = []
    if (tests := course.latest_tests) is not None:
        told.append(Text(cut(f"tests {tests.number:03d}: {verdict(tests.told)}", width)))
        told[0].stylize(STYLES[tone_of(judged(tests.told), BAD)], len("tests 000: "))
    elif course.baseline is not None and course.baseline.status != RUNNING:
        told.append(Text(cut(f"{BEFORE}: {verdict_before(vars(course.baseline))}", width)))
    return [*told, Text(cut(f"files: {course.files.in_words}", width))]
