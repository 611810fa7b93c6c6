"""A flow as a drawing, with the path of a run: its steps below each other in order, other transitions beside them.

From left to right: the steps; the conditions of their transitions, each on its own line; the ends; and the tracks on
which transitions run up or down to their step. Nothing crosses a text, whatever the flow. Sizes in pixels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from textwrap import wrap
from typing import Any, Self

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, read_flows
from codex_multi_role.cli.flow_explanation import worst_case_words
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError, ExitCode
from codex_multi_role.extensions.pages.report.run_tree import TONES, ToneOf
from codex_multi_role.flow.chart import NEXT, OUT, Chart, Node, charts, end_words
from codex_multi_role.flow.routing import End
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.lifecycle.team_loading import load_catalog, load_flow_and_called
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import ASKS, BAD, BUSY, GOOD, IDLE, WARN
from codex_multi_role.presentation.pieces import WorkPiece
from codex_multi_role.presentation.wording import one_line, plural
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.events import RunEnded
from codex_multi_role.run_options import RunOptions

LEFT, TOP, BOX, LINE, BESIDE, GAP, PADDING = 16, 46, 268, 19, 24, 40, 12
COLUMNS, LABEL_COLUMNS, END_COLUMNS = 36, 46, 28
LETTER = 6.7
TRACK = 16
_VISIT_AND_INDEX = r"\.\d+(\.\d+)?"
_TRY = re.compile(r"/try-\d+$")
_END_TONES: dict[int, str] = {ExitCode.GOAL_REACHED: GOOD, ExitCode.FAILED: BAD, ExitCode.WAITING: ASKS}
"""As the run's status has them; any other code is one to look at: not reached, stopped."""


@dataclass
class PathTaken:
    """Path through one flow in all its walks: ``walks``, ``visits`` of each step, and how often ``ways`` were taken.

    ``tones``: how the latest visit of each step is doing. ``stopped``: step and end of the run's own walk if it did not
    finish with one of the flow's ends.
    """

    walks: int = 0
    visits: Counter[str] = field(default_factory=Counter)
    tones: dict[str, str] = field(default_factory=dict)
    ways: Counter[tuple[str, str | End]] = field(default_factory=Counter)
    stopped: tuple[str, End] | None = None


def paths_taken(
    charts: Sequence[Chart],
    visits: Iterable[WorkPiece],
    ended: RunEnded | None,
    tone: Callable[[WorkPiece], str] = lambda _: IDLE,
) -> dict[str, PathTaken]:
    """Return the paths by flow; the first of ``charts`` is the run's own. ``tone``: how a visit is doing.

    A key identifies a called flow's walk; its end is known only if there is no choice.
    """
    walks: dict[str, list[str]] = {}
    tones: dict[str, dict[str, str]] = {}
    for visit in visits:
        key, _, step = visit.step.rpartition("/")
        walks.setdefault(key, []).append(step)
        tones.setdefault(key, {})[step] = tone(visit)
    by_name = {chart.name: chart for chart in charts}
    known: dict[str, Chart | None] = {"": charts[0]}
    paths = {name: PathTaken() for name in by_name}
    for key in sorted(walks, key=lambda key: key.count("/")):
        chart = known[key] = known[key] if key in known else _called(by_name, known, key)
        if chart is not None:
            _walk(paths[chart.name], chart, walks[key])
            paths[chart.name].tones |= tones[key]
            _end(paths[chart.name], chart, walks[key][-1], ended, own=not key)
    return paths


def _called(charts: Mapping[str, Chart], known: Mapping[str, Chart | None], key: str) -> Chart | None:
    """The flow that the unit at the end of ``key`` called."""
    above, _, unit = _TRY.sub("", key).rpartition("/")
    caller = known.get(above)
    nodes = caller.nodes if caller is not None else ()
    found = [node for node in nodes if node.step.call and re.fullmatch(re.escape(node.id) + _VISIT_AND_INDEX, unit)]
    longest = max(found, key=lambda node: len(node.id), default=None)  # ids may contain dots
    return charts.get(longest.step.call or "") if longest is not None else None


def _walk(path: PathTaken, chart: Chart, steps: list[str]) -> None:
    names = {node.id for node in chart.nodes}
    path.walks += 1
    path.visits.update(step for step in steps if step in names)
    path.ways.update(pairwise(steps))


def _end(path: PathTaken, chart: Chart, last: str, ended: RunEnded | None, *, own: bool) -> None:
    node = next((node for node in chart.nodes if node.id == last), None)
    if node is None:
        return
    if not own:
        path.ways.update((last, end) for end in node.ends if len(node.ends) == 1)
    elif ended is not None:
        end = End(ended.outcome, ended.exit_code)
        if end in node.ends:
            path.ways[last, end] += 1
        else:
            path.stopped = (last, end)


@dataclass(frozen=True)
class Words:
    x: float
    y: float
    text: str
    style: str = ""


@dataclass(frozen=True)
class Box:
    """A step, or an end (``kind`` "end"). ``count``: how often the run was there; 0: never.

    ``tone``: how the step's latest visit is doing, or how good the end is.
    """

    kind: str
    x: float
    y: float
    width: float
    height: float
    words: list[Words]
    count: int
    title: str
    tone: str = ""

    @property
    def is_end(self) -> bool:
        return self.kind == "end"


@dataclass(frozen=True)
class DrawnTransition:
    """``line``: an SVG path, its arrow at the end. ``label``: its condition. ``count``: how often it was taken."""

    line: str
    label: Words
    count: int
    title: str


@dataclass
class Picture:
    """``ways``: the rarest first, so that those taken most lie above the others."""

    name: str
    description: str
    walks: int
    boxes: list[Box] = field(default_factory=list)
    ways: list[DrawnTransition] = field(default_factory=list)
    width: float = 0
    height: float = 0

    @property
    def in_words(self) -> str:
        steps = (box for box in self.boxes if not box.is_end)
        return ", ".join(f"{box.words[0].text} {plural(box.count, 'time')}{_now(box.tone)}" for box in steps)


def _now(tone: str) -> str:
    return f", {TONES[tone]}" if tone in (BUSY, WARN, ASKS, BAD) else ""


@dataclass(frozen=True)
class _Out:
    """A step's transitions to one place, combined: the events do not say which of them was taken."""

    label: str
    to: str | End
    leads: str
    count: int

    @property
    def shown(self) -> str:
        return one_line(self.label, LABEL_COLUMNS)

    @property
    def end(self) -> str:
        return one_line(end_words(self.to), END_COLUMNS) if isinstance(self.to, End) else ""


def draw(chart: Chart, path: PathTaken, roles: Sequence[str] = ()) -> Picture:
    """Draw a flow. ``roles``: those that ``ask: "*"`` asks."""
    return _FlowDrawing(chart, path, roles).picture


class _FlowDrawing:
    def __init__(self, chart: Chart, path: PathTaken, roles: Sequence[str]) -> None:
        self._path, self._roles = path, roles
        self.picture = Picture(chart.name, one_line(chart.description, 500), path.walks)
        outs = [list(self._outs(node)) for node in chart.nodes]
        labels = [len(out.shown) for each in outs for out in each]
        self._ends_x = LEFT + BOX + 34 + min(LABEL_COLUMNS + 6, max(labels, default=0)) * LETTER
        ends = [len(out.end) for each in outs for out in each if out.leads == OUT]
        self._tracks_x = self._ends_x + (max(ends) * LETTER + 46 if ends else 0) + TRACK
        self._boxes = self._place_steps(chart.nodes, outs)
        self._tracks: list[list[tuple[float, float]]] = []
        self._start(self.picture.boxes[0])
        for node, each in zip(chart.nodes, outs, strict=True):
            self._draw_exits(self._boxes[node.id], each)
        self.picture.ways.sort(key=lambda way: way.count)
        self.picture.width = self._tracks_x + TRACK * len(self._tracks) + LEFT
        self.picture.height += PADDING

    def _outs(self, node: Node) -> Iterator[_Out]:
        """Yield a step's transitions by target, the following step last; then a stop that no transition leads to."""
        labels: dict[tuple[str | End, str], list[str]] = {}
        for arrow in node.arrows:
            labels.setdefault((arrow.to, arrow.leads), []).append(arrow.label)
        for to, leads in sorted(labels, key=lambda place: place[1] == NEXT):
            yield _Out(" or ".join(filter(None, labels[to, leads])), to, leads, self._path.ways[node.id, to])
        if self._path.stopped is not None and self._path.stopped[0] == node.id:
            end = self._path.stopped[1]
            yield _Out(f"the run {'waits' if end.exit_code == ExitCode.WAITING else 'ended'} here", end, OUT, 1)

    def _place_steps(self, nodes: Sequence[Node], outs: list[list[_Out]]) -> dict[str, Box]:
        y, boxes = float(TOP), {}
        for node, each in zip(nodes, outs, strict=True):
            words = list(self._words(node, y))
            beside = sum(out.leads != NEXT for out in each)
            height = max(len(words) * LINE, LINE + beside * BESIDE) + PADDING
            title = f"{node.id}: {one_line(node.words, 300)}"
            tone = self._path.tones.get(node.id, "")
            boxes[node.id] = Box(node.step.kind, LEFT, y, BOX, height, words, self._path.visits[node.id], title, tone)
            y += height + GAP
        self.picture.boxes = list(boxes.values())
        self.picture.height = y - GAP
        return boxes

    def _words(self, node: Node, y: float) -> Iterator[Words]:
        about = [*([] if node.words == node.id else [node.words]), *node.notes]
        if node.step.ask == EVERY_ROLE and self._roles:
            about.append(", ".join(self._roles))
        lines = [line for text in about for line in wrap(one_line(text, 150), COLUMNS)]
        for number, line in enumerate([one_line(node.id, COLUMNS), *lines]):
            yield Words(LEFT + 14, y + LINE * (number + 1) - 1, line, "" if number else "name")

    def _start(self, first: Box) -> None:
        middle = LEFT + BOX / 2
        label = Words(middle + 12, TOP - 20, "start")
        self.picture.ways.append(
            DrawnTransition(f"M{middle} {TOP - 24}V{first.y - 2}", label, self._path.walks, "start")
        )

    def _draw_exits(self, box: Box, outs: list[_Out]) -> None:
        for number, out in enumerate(out for out in outs if out.leads != NEXT):
            y = box.y + LINE + BESIDE * (number + 0.5) + 4
            line = self._to_end(out, out.to, y) if isinstance(out.to, End) else self._to_step(out.to, y)
            self._add(out, line, Words(LEFT + BOX + 10, y - 5, out.shown))
        for out in (out for out in outs if out.leads == NEXT):
            middle, bottom = LEFT + BOX / 2, box.y + box.height
            self._add(out, f"M{middle} {bottom}v{GAP - 2}", Words(middle + 10, bottom + GAP / 2 + 3, out.shown))

    def _add(self, out: _Out, line: str, label: Words) -> None:
        to = end_words(out.to) if isinstance(out.to, End) else out.to
        taken = f"taken {plural(out.count, 'time')}" if out.count else "not taken"
        title = f"{one_line(out.label, 500) or 'always'} → {to}: {taken}"
        self.picture.ways.append(DrawnTransition(line, label, out.count, title))

    def _to_end(self, out: _Out, end: End, y: float) -> str:
        tone = _END_TONES.get(end.exit_code, WARN)
        width = len(out.end) * LETTER + 22
        words = [Words(self._ends_x + 11, y + 4, out.end)]
        self.picture.boxes.append(Box("end", self._ends_x, y - 10, width, 20, words, out.count, end_words(end), tone))
        return f"M{LEFT + BOX} {y}H{self._ends_x - 2}"

    def _to_step(self, to: str, y: float) -> str:
        """Return the line to the right, along a track, and back to the height of the step's name."""
        target = self._boxes[to].y + LINE / 2 + 2
        x = self._tracks_x + TRACK * self._free_track(min(y, target), max(y, target))
        return f"M{LEFT + BOX} {y}H{x}V{target}H{LEFT + BOX + 2}"

    def _free_track(self, top: float, bottom: float) -> int:
        for number, taken in enumerate(self._tracks):
            if all(bottom < other_top or top > other_bottom for other_top, other_bottom in taken):
                taken.append((top, bottom))
                return number
        self._tracks.append([(top, bottom)])
        return len(self._tracks) - 1


@dataclass(frozen=True)
class KnownFlows:
    """The charts of the flows, read once for any number of drawings; ``shown``: the same without secrets.

    ``problem``: why they cannot be drawn; ``at_most``: the worst case of the whole run.
    """

    own: tuple[Chart, ...] = ()
    shown: tuple[Chart, ...] = ()
    problem: str = ""
    at_most: str = ""

    @classmethod
    def of_run(cls, folder: RunFolder, record: Mapping[str, Any], course: Course) -> Self:
        name = str(record.get("flow") or course.started.flow)
        try:
            flows = read_flows(name, (folder.catalog_path / str(record.get("catalog_file", "catalog.yaml"))).parent)
            shown = charts({each: _without_secrets(flow, folder.redact) for each, flow in flows.items()}, name)
            return cls(charts(flows, name), shown, at_most=worst_case_of(folder, record))
        except (CodexMultiRoleError, OSError) as error:
            return cls(problem=one_line(folder.redact(str(error)), 500))

    def drawn(self, course: Course, tone: ToneOf) -> list[Picture]:
        """Draw them as they are now, the run's own flow first."""
        paths = paths_taken(self.own, course.visits, course.ended, tone) if self.own else {}
        pairs = zip(self.own, self.shown, strict=True)
        return [draw(chart, paths[own.name], course.started.roles) for own, chart in pairs]


def _without_secrets(flow: FlowSpec, redact: Redactor) -> FlowSpec:
    """Redact before drawing: in wrapped or cut text, a secret is hidden only in part. Raises `DefinitionError`."""
    try:
        return FlowSpec.model_validate(redact.within(flow.model_dump(by_alias=True, exclude_unset=True)))
    except ValueError as error:
        raise DefinitionError(f"a name in {flow.name} is the value of a secret variable and was masked") from error


def worst_case_of(folder: RunFolder, record: Mapping[str, Any]) -> str:
    """The worst case of the whole run, by the definitions that it kept; empty if they cannot be read."""
    try:
        options = RunOptions.from_record(dict(record["options"]))
        source = folder.catalog_path / str(record.get("catalog_file", "catalog.yaml"))
        flows, catalog = load_flow_and_called(str(record["flow"]), load_catalog(source))
        return worst_case_words(flows, str(record["flow"]), catalog, options)
    except (CodexMultiRoleError, OSError, LookupError, TypeError, ValueError):
        return ""
