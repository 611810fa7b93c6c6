"""A run's `Progress` drawn with rich: title, cycle progress, a table of roles, tests, warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from codex_multi_role.presentation.plain import NO_MODEL
from codex_multi_role.presentation.progress import BUSY, READY, SKIPPED, STARTING, Progress, RoleProgress
from codex_multi_role.presentation.wording import compact, duration, moment, one_line, verdict

WIDE, MIDDLE, NARROW = 92, 64, 36
LATEST_WARNINGS = 3
STATE_STYLES = {STARTING: "dim", READY: "", SKIPPED: "yellow", "completed": "green", "interrupted": "yellow"}
TEST_STYLES = {"passed": "green", "running": "cyan", "no tests": ""}


@dataclass(frozen=True)
class Column:
    """A column of the role table, shown on terminals of ``least`` to ``most`` columns."""

    heading: str
    cell: Callable[[RoleProgress, str], Text]
    number: bool = False
    least: int = 0
    most: int = 1_000_000


def render(progress: Progress, now: str, width: int) -> RenderableType:
    """The whole view at the moment ``now`` (as an event's ``at``) for a terminal of ``width`` columns."""
    parts: list[RenderableType] = [_title(progress)]
    if progress.playbook:
        parts.append(Text(NO_MODEL.format(one_line(progress.playbook)), style="yellow"))
    parts += [_cycle_line(progress, now, width), _role_table(progress, now, width), _tests_line(progress)]
    parts += [Text(f"review {key}: {one_line(words)}", style="cyan") for key, words in progress.questions.items()]
    parts += [Text(f"warning: {one_line(words)}", style="yellow") for words in progress.warnings[-LATEST_WARNINGS:]]
    return Group(*parts)


def _title(progress: Progress) -> Text:
    if not progress.run_id:
        return Text("starting", style="bold")
    return _unwrapped(
        Text.assemble((f"run {progress.run_id}", "bold"), f"  flow {progress.flow}  {one_line(progress.goal)}")
    )


def _unwrapped(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _cycle_line(progress: Progress, now: str, width: int) -> RenderableType:
    elapsed = duration(_seconds_between(progress.began, now))
    words = Text(f"{progress.where}  {elapsed}".strip())
    if width < MIDDLE or not progress.cycle:
        return words
    line = Table.grid(padding=(0, 1))
    line.add_row(words, ProgressBar(total=1.0, completed=progress.share, width=width // 3))
    return line


def _role_table(progress: Progress, now: str, width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1), show_edge=False, pad_edge=False)
    columns = [column for column in COLUMNS if column.least <= width <= column.most]
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.number else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if column.cell is _last else None,
        )
    for role in progress.roles.values():
        table.add_row(*(column.cell(role, now) for column in columns))
    return table


def _name(role: RoleProgress, now: str) -> Text:
    return Text(one_line(role.name, 24), style="bold")


def _state(role: RoleProgress, now: str) -> Text:
    style = "cyan" if role.state in BUSY else STATE_STYLES.get(role.state, "red")
    return Text(one_line(role.state.replace("_", " ")), style=style)


def _turn(role: RoleProgress, now: str) -> Text:
    return Text(str(role.turn or ""))


def _tokens(role: RoleProgress, now: str) -> Text:
    return Text(compact(role.input_tokens + role.output_tokens))


def _tokens_in(role: RoleProgress, now: str) -> Text:
    return Text(compact(role.input_tokens))


def _tokens_out(role: RoleProgress, now: str) -> Text:
    return Text(compact(role.output_tokens))


def _time(role: RoleProgress, now: str) -> Text:
    return Text(duration(role.seconds + _seconds_between(role.working_since, now)))


def _last(role: RoleProgress, now: str) -> Text:
    return Text(one_line(role.last), style="dim")


COLUMNS = (
    Column("role", _name),
    Column("state", _state),
    Column("turn", _turn, number=True, least=MIDDLE),
    Column("tokens", _tokens, number=True, least=MIDDLE, most=WIDE - 1),
    Column("tokens in", _tokens_in, number=True, least=WIDE),
    Column("out", _tokens_out, number=True, least=WIDE),
    Column("time", _time, number=True, least=NARROW),
    Column("last event", _last, least=MIDDLE),
)


def _tests_line(progress: Progress) -> Text:
    skipped = f", {progress.files_skipped} skipped" if progress.files_skipped else ""
    files = f"files: {progress.files_written} written{skipped}"
    if progress.tests is None:
        return _unwrapped(Text(files))
    words = (verdict(progress.tests), TEST_STYLES.get(progress.tests["status"], "red"))
    return _unwrapped(Text.assemble(f"tests {progress.tests['number']:03d}: ", words, f"   {files}"))


def _seconds_between(start: str, end: str) -> float:
    if not (start and end):
        return 0.0
    return max(0.0, (moment(end) - moment(start)).total_seconds())
