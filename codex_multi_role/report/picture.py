"""A flow as a drawing: its steps below each other in order, and transitions to other places beside them.

From left to right: the steps; the conditions of their transitions, each on its own line; the ends; and the tracks on
which transitions run up or down to their step. Nothing crosses a text, whatever the flow. Sizes in pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, StepSpec
from codex_multi_role.flow.routing import End
from codex_multi_role.flow.words import arrows, end_words, step_notes, step_words
from codex_multi_role.presentation.wording import one_line, plural
from codex_multi_role.report.path_taken import PathTaken

LEFT, TOP, BOX, LINE, BESIDE, GAP, PADDING = 16, 46, 268, 19, 24, 40, 12
COLUMNS, LABEL_COLUMNS, END_COLUMNS = 36, 46, 28
LETTER = 6.7
TRACK = 16


@dataclass(frozen=True)
class Words:
    x: float
    y: float
    text: str
    style: str = ""


@dataclass(frozen=True)
class Box:
    """A step, or an end (``kind`` "end good", "end bad"). ``count``: how often the run was there; 0: never."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    words: list[Words]
    count: int
    title: str


@dataclass(frozen=True)
class DrawnTransition:
    """``line``: an SVG path, its arrow at the end. ``label``: its condition. ``count``: how often it was taken."""

    line: str
    label: Words
    count: int
    title: str


@dataclass
class Picture:
    name: str
    description: str
    walks: int
    boxes: list[Box] = field(default_factory=list)
    ways: list[DrawnTransition] = field(default_factory=list)
    width: float = 0
    height: float = 0


@dataclass(frozen=True)
class _Out:
    """A step's transitions to one place, combined: the events do not say which of them was taken."""

    label: str
    to: str | End
    count: int


def draw(flow: FlowSpec, path: PathTaken, roles: Sequence[str] = ()) -> Picture:
    """Draw a flow. ``roles``: those that ``ask: "*"`` asks."""
    return _FlowDrawing(flow, path, roles).picture


class _FlowDrawing:
    def __init__(self, flow: FlowSpec, path: PathTaken, roles: Sequence[str]) -> None:
        self._flow, self._path, self._roles = flow, path, roles
        self.picture = Picture(flow.name, one_line(flow.description, 500), path.walks)
        outs = [list(self._outs(index)) for index in range(len(flow.steps))]
        labels = [len(self._label(out)) for each in outs for out in each]
        self._ends_x = LEFT + BOX + 34 + min(LABEL_COLUMNS + 6, max(labels, default=0)) * LETTER
        ends = [len(self._end_text(out.to)) for each in outs for out in each if isinstance(out.to, End)]
        self._tracks_x = self._ends_x + (max(ends) * LETTER + 46 if ends else 0) + TRACK
        self._boxes = self._place_steps(outs)
        self._tracks: list[list[tuple[float, float]]] = []
        self._start()
        for step, each in zip(flow.steps, outs, strict=True):
            self._draw_outs(step, each)
        self.picture.width = self._tracks_x + TRACK * len(self._tracks) + LEFT
        self.picture.height += PADDING

    def _outs(self, index: int) -> Iterator[_Out]:
        """Yield a step's transitions by target, the following step last; then a stop that no transition leads to."""
        step = self._flow.steps[index]
        by_place: dict[str | End, list[str]] = {}
        for arrow in arrows(self._flow, index):
            by_place.setdefault(arrow.to, []).append(arrow.label)
        below = self._flow.steps[index + 1].id if index + 1 < len(self._flow.steps) else None
        for to in sorted(by_place, key=lambda to: to == below):
            label = " or ".join(filter(None, by_place[to]))
            yield _Out(label, to, self._path.ways[step.id, to])
        if self._path.stopped is not None and self._path.stopped[0] == step.id:
            yield _Out("the run ended here", self._path.stopped[1], 1)

    def _label(self, out: _Out) -> str:
        return one_line(out.label, LABEL_COLUMNS)

    def _end_text(self, end: str | End) -> str:
        if not isinstance(end, End):
            return ""
        return one_line(end_words(end), END_COLUMNS)

    def _place_steps(self, outs: list[list[_Out]]) -> dict[str, Box]:
        y, boxes = float(TOP), {}
        for index, step in enumerate(self._flow.steps):
            words = list(self._words(step, y))
            beside = sum(not self._leads_to_next(index, out) for out in outs[index])
            height = max(len(words) * LINE, LINE + beside * BESIDE) + PADDING
            count = self._path.visits[step.id]
            title = f"{step.id}: {one_line(step_words(step), 300)}"
            boxes[step.id] = Box(step.kind, LEFT, y, BOX, height, words, count, title)
            y += height + GAP
        self.picture.boxes = list(boxes.values())
        self.picture.height = y - GAP
        return boxes

    def _words(self, step: StepSpec, y: float) -> Iterator[Words]:
        about = [*([] if step_words(step) == step.id else [step_words(step)]), *step_notes(step)]
        if step.ask == EVERY_ROLE and self._roles:
            about.append(", ".join(self._roles))
        lines = [line for text in about for line in wrap(one_line(text, 150), COLUMNS)]
        for number, line in enumerate([one_line(step.id, COLUMNS), *lines]):
            yield Words(LEFT + 14, y + LINE * (number + 1) - 1, line, "" if number else "name")

    def _leads_to_next(self, index: int, out: _Out) -> bool:
        return index + 1 < len(self._flow.steps) and out.to == self._flow.steps[index + 1].id

    def _start(self) -> None:
        first = self._boxes[self._flow.steps[0].id]
        middle = LEFT + BOX / 2
        line = f"M{middle} {TOP - 24}V{first.y - 2}"
        self.picture.ways.append(
            DrawnTransition(line, Words(middle + 12, TOP - 20, "start"), self._path.walks, "start")
        )

    def _draw_outs(self, step: StepSpec, outs: list[_Out]) -> None:
        box, index = self._boxes[step.id], [each.id for each in self._flow.steps].index(step.id)
        beside = [out for out in outs if not self._leads_to_next(index, out)]
        for number, out in enumerate(beside):
            y = box.y + LINE + BESIDE * (number + 0.5) + 4
            line = self._to_end(out.to, out.count, y) if isinstance(out.to, End) else self._to_step(out.to, y)
            self._add(out, line, Words(LEFT + BOX + 10, y - 5, self._label(out)))
        for out in outs:
            if self._leads_to_next(index, out):
                middle, bottom = LEFT + BOX / 2, box.y + box.height
                self._add(
                    out, f"M{middle} {bottom}v{GAP - 2}", Words(middle + 10, bottom + GAP / 2 + 3, self._label(out))
                )

    def _add(self, out: _Out, line: str, label: Words) -> None:
        to = end_words(out.to) if isinstance(out.to, End) else out.to
        taken = f"taken {plural(out.count, 'time')}" if out.count else "not taken"
        title = f"{one_line(out.label, 500) or 'always'} → {to}: {taken}"
        self.picture.ways.append(DrawnTransition(line, label, out.count, title))

    def _to_end(self, end: End, count: int, y: float) -> str:
        text = self._end_text(end)
        kind = "end bad" if end.exit_code else "end good"
        width = len(text) * LETTER + 22
        words = [Words(self._ends_x + 11, y + 4, text)]
        self.picture.boxes.append(Box(kind, self._ends_x, y - 10, width, 20, words, count, end_words(end)))
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
