"""A run's `Progress` drawn with rich: title, flow position, progress, budget, a table of roles, tests, questions."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType  # noqa: TID251 - made to clean its texts
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.outcome import (
    BAD,
    BUSY,
    GOOD,
    IDLE,
    WARN,
    answer_commands,
    outcome_in_words,
    playbook_in_words,
    status_in_words,
    tone_of,
)
from codex_multi_role.presentation.progress import AT_WORK, Progress, RoleProgress
from codex_multi_role.presentation.wording import (
    BEFORE,
    amounts,
    compact,
    cost_in_words,
    duration,
    failed_tests,
    judged,
    one_line,
    plural,
    seconds_between,
    verdict,
    verdict_before,
)
from codex_multi_role.run_folder import RunFolder

WIDEST, WIDE, MIDDLE, NARROW = 104, 92, 64, 36
LATEST_WARNINGS = 3
HEADING_LINES = 2
UNLIMITED = 1_000_000
LAST = "last event"
LEAST_OF_LAST = 16
LONGEST_NAME = 40
KEY_COLUMNS, GAP = 2, 2
"""The first columns, which are always shown, and the spaces around each."""
RULER = Console(file=io.StringIO())
STYLES = {GOOD: "green", BAD: "red", WARN: "yellow", BUSY: "cyan", IDLE: "dim"}


class DrawingConsole(Console):
    """A terminal that no text in a drawing controls."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n"), segment.style)


@dataclass(frozen=True)
class RoleColumn:
    """A column of the role table, shown on terminals that are ``least`` to ``most`` columns wide."""

    heading: str
    cell: Callable[[RoleProgress, str], Text]
    number: bool = False
    least: int = 0
    most: int = UNLIMITED


def render(
    progress: Progress, now: str, width: int, height: int = UNLIMITED, *, questions: bool = True
) -> RenderableType:
    """Draw the whole view at ``now`` (an event's ``at``) for a terminal of ``width`` columns and ``height`` lines.

    ``questions``: whether to show them, because they are not asked elsewhere on this terminal.
    """
    above: list[RenderableType] = [_title(progress)]
    if progress.forked:
        above.append(_unwrapped(Text(one_line(progress.forked, 500), style="dim")))
    if progress.started.playbook:
        above.append(Text(playbook_in_words(progress.started.playbook), style="yellow"))
    above += [*_position(progress, width), _progress_line(progress, now, width)]
    above += [*_tasks_line(progress), *_budget_line(progress, now)]
    asked = _questions(progress) if questions else []
    below = [_tests_line(progress), *_failed_tests(progress), *asked, *_warnings(progress)]
    lines_left = height - _lines_of([*above, *below], width)
    return Group(*above, *_role_table(progress, now, width, lines_left), *below)


def _lines_of(parts: list[RenderableType], width: int) -> int:
    """Count the lines of ``parts``: commands that somebody is to type are wrapped, not cut."""
    return len(RULER.render_lines(Group(*parts), RULER.options.update_width(width)))


def _title(progress: Progress) -> Text:
    run = progress.started
    if not run.run_id:
        return Text("starting", style="bold")
    words = f"  flow {one_line(run.flow)}  {one_line(run.goal)}"
    return _unwrapped(Text.assemble((f"run {run.run_id}", "bold"), words))


def _unwrapped(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _position(progress: Progress, width: int) -> list[Text]:
    """Draw the flow's steps in order with their visits, the current one in brackets, as many around it as fit."""
    names = list(progress.position.steps)
    if len(names) < 2 or progress.position.current_step not in progress.position.steps:
        return []
    here = names.index(progress.position.current_step)
    first, last = here, here
    while last - first + 1 < len(names):
        more = (max(0, first - 1), min(len(names) - 1, last + 1))
        if len(_steps_line(progress, names, *more).plain) > width:
            break
        first, last = more
    return [_unwrapped(_steps_line(progress, names, first, last))]


def _steps_line(progress: Progress, names: list[str], first: int, last: int) -> Text:
    words = []
    for name in names[first : last + 1]:
        visits = progress.position.steps[name]
        label = one_line(f"{name} x{visits}" if visits > 1 else name, 60)
        if name == progress.position.current_step:
            words.append((f"[{label}]", "bold"))
        else:
            words.append((label, "" if visits else "dim"))
    line = Text(" > ").join(Text(*each) for each in words)
    return Text.assemble("... > " if first else "", line, " > ..." if last < len(names) - 1 else "")


def _progress_line(progress: Progress, now: str, width: int) -> RenderableType:
    where = progress.where
    if progress.ended is not None:
        where = ", ".join(filter(None, (outcome_in_words(progress.ended.outcome), where)))
    elapsed = f"{duration(seconds_between(progress.started.at, now))} elapsed" if progress.started.at else ""
    words = Text("  ".join(filter(None, (where, elapsed))))
    if width < MIDDLE or progress.share is None:
        return words
    line = Table.grid(padding=(0, 1))
    line.add_row(
        words,
        ProgressBar(
            total=1.0, completed=progress.share, width=width // 3, complete_style="cyan", finished_style="cyan"
        ),
    )
    return line


def _tasks_line(progress: Progress) -> list[Text]:
    words = progress.position.tasks_in_words
    return [_unwrapped(Text(f"tasks {words}"))] if words else []


def _budget_line(progress: Progress, now: str) -> list[Text]:
    left = [] if progress.ended else amounts(progress.left(now))
    return [_unwrapped(Text(f"left: {', '.join(left)}"))] if left else []


def _questions(progress: Progress) -> list[Text]:
    asked = [
        _unwrapped(Text(one_line(f"review {key}: {words}"), style="cyan")) for key, words in progress.questions.items()
    ]
    if asked:
        folder = RunFolder(progress.folder or Path(progress.started.folder))
        commands = answer_commands(folder, list(progress.questions))
        asked.append(Text(f"  answer: {commands}"))
    return asked


def _warnings(progress: Progress) -> list[Text]:
    return [
        _unwrapped(Text(f"warning: {one_line(words)}", style="yellow"))
        for words in progress.warnings[-LATEST_WARNINGS:]
    ]


def _role_table(progress: Progress, now: str, width: int, lines: int) -> list[RenderableType]:
    """Draw the table in at most ``lines`` lines; if not all roles fit, those at work are shown first."""
    shown, hidden = _fit_roles(list(progress.roles.values()), max(1, lines - HEADING_LINES))
    columns = _fit_columns(shown, now, width)
    table = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1), show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.number else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if column.heading == LAST else None,
        )
    for role in shown:
        table.add_row(*(column.cell(role, now) for column in columns))
    if not hidden:
        return [table]
    states = Counter(status_in_words(role.state) for role in hidden)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    return [table, _unwrapped(Text(f"and {plural(len(hidden), 'role')} more: {counts}", style="dim"))]


def _fit_columns(roles: list[RoleProgress], now: str, width: int) -> list[RoleColumn]:
    """Choose the columns for this width: without the last ones, if they would take room from a name or a state."""
    columns = [column for column in COLUMNS if column.least <= width <= column.most]
    needed = {column: _needed(column, roles, now) for column in columns}
    while len(columns) > KEY_COLUMNS and sum(needed[column] + GAP for column in columns) > width:
        columns.pop()
    return columns


def _needed(column: RoleColumn, roles: list[RoleProgress], now: str) -> int:
    if column.heading == LAST:
        return LEAST_OF_LAST
    return max([len(column.heading), *(column.cell(role, now).cell_len for role in roles)])


def _fit_roles(roles: list[RoleProgress], most: int) -> tuple[list[RoleProgress], list[RoleProgress]]:
    if len(roles) <= most:
        return roles, []
    kept = sorted(range(len(roles)), key=lambda index: (roles[index].state not in AT_WORK, -index))[: max(1, most - 1)]
    return [roles[index] for index in sorted(kept)], [role for index, role in enumerate(roles) if index not in kept]


COLUMNS = (
    RoleColumn("role", lambda role, now: Text(one_line(role.name, LONGEST_NAME), style="bold")),
    RoleColumn("state", lambda role, now: Text(status_in_words(role.state), style=STYLES[tone_of(role.state, BAD)])),
    RoleColumn("turn", lambda role, now: Text(str(role.turn or "")), number=True, least=MIDDLE),
    RoleColumn("tokens", lambda role, now: Text(compact(role.tokens)), number=True, least=MIDDLE, most=WIDE - 1),
    RoleColumn("tokens in", lambda role, now: Text(compact(role.input_tokens)), number=True, least=WIDE),
    RoleColumn("out", lambda role, now: Text(compact(role.output_tokens)), number=True, least=WIDE),
    RoleColumn(
        "cost", lambda role, now: Text(cost_in_words(role.cost) if role.has_cost else ""), number=True, least=WIDEST
    ),
    RoleColumn("time", lambda role, now: Text(duration(role.seconds_at(now))), number=True, least=NARROW),
    RoleColumn(LAST, lambda role, now: Text(one_line(role.doing), style="dim"), least=MIDDLE),
)


def _tests_line(progress: Progress) -> Text:
    files = f"files: {progress.files.in_words}"
    if progress.tests is not None:
        words = (verdict(vars(progress.tests)), STYLES[tone_of(judged(vars(progress.tests)), BAD)])
        return _unwrapped(Text.assemble(f"tests {progress.tests.number:03d}: ", words, f"   {files}"))
    if progress.baseline is not None:
        return _unwrapped(Text(f"{BEFORE}: {verdict_before(vars(progress.baseline))}   {files}"))
    return _unwrapped(Text(files))


def _failed_tests(progress: Progress) -> list[Text]:
    names = failed_tests(vars(progress.tests)) if progress.tests is not None else ""
    return [_unwrapped(Text(f"  failed: {names}", style=STYLES[BAD]))] if names else []
