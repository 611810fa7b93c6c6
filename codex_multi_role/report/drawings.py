"""The timeline and the flows as SVG. Sizes that depend on the run are attributes: the page's policy forbids styles."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from codex_multi_role.presentation.flow_picture import Box, DrawnTransition, Picture
from codex_multi_role.presentation.wording import plural
from codex_multi_role.report.markup import NOTHING, joined, scrolling
from codex_multi_role.report.timeline import Bar, Mark, Timeline

ROW, AXIS = 26, 24
KEYS = (("good", "completed, passed"), ("bad", "failed"), ("warn", "cut short, open"), ("idle", "other"))
PAUSE = ("pause", "a pause, cut out")


def swim_lanes(timeline: Timeline) -> Markup:
    keys = [*KEYS, PAUSE] if timeline.cuts else KEYS
    legend = joined(Markup('<span><i class="key {}"></i> {}</span> ').format(*key) for key in keys)
    names = joined(Markup('<li class="{}">{}</li>').format(lane.kind, lane.name) for lane in timeline.lanes)
    height = ROW * len(timeline.lanes) + AXIS
    label = "Who worked when; the entries below say the same in words"
    drawing = Markup('<svg id="lanes" role="img" aria-label="{}" width="{}" height="{}">\n{}</svg>').format(
        label, timeline.pixels, height, joined(_lanes(timeline, height))
    )
    return Markup(
        '<p class="legend" aria-hidden="true">{}</p>\n<div class="lanes">\n'
        '<ul class="names" aria-hidden="true">{}</ul>\n{}</div>\n'
    ).format(legend, names, scrolling("Timeline, scrollable", drawing))


def _lanes(timeline: Timeline, height: int) -> Iterator[Markup]:
    for tick in timeline.ticks:
        yield _line("tick", tick, height, NOTHING)
        yield Markup('<text class="tick" x="{}%" dx="3" y="{}">{}</text>\n').format(
            _short(tick.x), height - 7, tick.words
        )
    for cut in timeline.cuts:
        yield _line("pause", cut, height, _title(f"{cut.words} without a turn or a test"))
    for number, lane in enumerate(timeline.lanes):
        for bar in lane.bars:
            yield _step(bar, ROW * number) if bar.label else _bar(bar, ROW * number)


def _line(kind: str, mark: Mark, height: int, title: Markup) -> Markup:
    piece = Markup('<line class="{0}" x1="{1}%" x2="{1}%" y1="0" y2="{2}">{3}</line>\n')
    return piece.format(kind, _short(mark.x), height - AXIS + 4, title)


def _step(bar: Bar, y: int) -> Markup:
    piece = Markup(
        '<svg x="{}%" y="{}" width="{}%" height="18"><rect class="step" width="100%" height="18" rx="3">{}</rect>'
        '<text class="step" x="5" y="13">{}</text></svg>\n'
    )
    return piece.format(bar.x, y + 4, bar.width, _title(bar.title), bar.label)


def _bar(bar: Bar, y: int) -> Markup:
    piece = Markup('<rect class="bar {}" data-target="{}" x="{}%" y="{}" width="{}%" height="16" rx="3">{}</rect>\n')
    return piece.format(bar.tone, bar.target, bar.x, y + 5, bar.width, _title(bar.title))


def flow_picture(picture: Picture, number: int) -> Markup:
    """Render a flow; ``number``: its position on the page, from 1. The first is the run's own flow."""
    walked = f"taken {plural(picture.walks, 'time')}. " if number > 1 else ""
    about = (walked if picture.walks else "not taken. ") + picture.description
    piece = Markup('<details class="flow"{}>\n<summary><h3>{}</h3> <span>{}</span></summary>\n{}</details>\n')
    is_open = Markup(" open") if picture.walks or number == 1 else NOTHING
    return piece.format(is_open, picture.name, about, scrolling(f"Flow {picture.name}", _flow(picture, number)))


def _flow(picture: Picture, number: int) -> Markup:
    piece = Markup(
        '<svg class="flow" role="img" aria-labelledby="flow-title-{0}" width="{1}" height="{2}"'
        ' viewBox="0 0 {1} {2}">\n<title id="flow-title-{0}">Flow {3}: {4}</title>\n<defs>{5}{6}</defs>\n{7}{8}</svg>'
    )
    ways = joined(_way(way, number) for way in picture.ways)
    boxes = joined(map(_box, picture.boxes))
    size = (round(picture.width), round(picture.height))
    arrows = (_arrow(f"arrow-{number}", 7, ""), _arrow(f"arrow-taken-{number}", 10, "taken"))
    return piece.format(number, *size, picture.name, picture.in_words, *arrows, ways, boxes)


def _arrow(name: str, size: int, kind: str) -> Markup:
    piece = Markup(
        '<marker id="{0}" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="{1}"'
        ' markerHeight="{1}" orient="auto"><path class="arrow {2}" d="M0 0L8 4L0 8z"/></marker>'
    )
    return piece.format(name, size, kind)


def _way(way: DrawnTransition, number: int) -> Markup:
    piece = Markup(
        '<g class="way {}">{}<path d="{}" marker-end="url(#arrow-{}{})"/><text x="{}" y="{}">{}{}</text></g>\n'
    )
    taken = "taken" if way.count else ""
    count = Markup(' <tspan class="count">&times;{}</tspan>').format(way.count) if way.count > 1 else NOTHING
    label = way.label
    return piece.format(
        taken, _title(way.title), way.line, "taken-" if taken else "", number, label.x, label.y, label.text, count
    )


def _box(box: Box) -> Markup:
    rect = Markup('<rect x="{}" y="{}" width="{}" height="{}" rx="{}"/>')
    inside = [rect.format(box.x, box.y, box.width, box.height, 10 if box.is_end else 6)]
    if not box.is_end:
        inside.append(
            Markup('<rect class="edge" x="{}" y="{}" width="5" height="{}" rx="2"/>').format(box.x, box.y, box.height)
        )
        visits = Markup('<text class="visits" text-anchor="end" x="{}" y="{}">&times;{}</text>')
        inside += [visits.format(box.x + box.width - 10, box.y + 18, box.count)] if box.count else []
    text = Markup('<text class="{}" x="{}" y="{}">{}</text>')
    inside += [text.format(words.style, words.x, words.y, words.text) for words in box.words]
    taken = " taken" if box.count else ""
    return Markup('<g class="box {}{}">{}{}</g>\n').format(box.kind, taken, _title(box.title), joined(inside))


def _title(words: str) -> Markup:
    return Markup("<title>{}</title>").format(words)


def _short(number: float) -> str:
    return f"{number:.3f}"
