"""What a run recorded, as HTML: values, tables and changes. All that it says becomes text, never markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby

from markdown_it import MarkdownIt
from markupsafe import Markup

from codex_multi_role.host.spelling import KEPT_IN_PAGES, printable
from codex_multi_role.presentation.result import ShownResult

MOST_PARTS, MOST_LEVELS = 2_000, 30
"""Of a value that is drawn; a larger one is shown as JSON, because its lists would be many times as long."""
MOST_COLUMNS, LONGEST_CELL, MOST_IN_CELL = 6, 120, 8
TOP_LEVEL = 3
"""The level of a first heading in the page, below the heading of its section."""
LOWEST_LEVEL = 6
_KINDS = {"+": "add", "-": "del", "\\": "meta"}


def text_html(text: str) -> Markup:
    return Markup('<pre tabindex="0">{}</pre>').format(_text(text))


def value_html(value: object) -> Markup:
    """A JSON value: an object as a list of its names, a list of small objects as a table."""
    drawn = _drawn(value) if _is_small(value) else text_html(json.dumps(value, ensure_ascii=False, indent=1))
    return Markup(f'<div class="value">{drawn}</div>')


def table_html(names: Iterable[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table; an empty cell for None."""
    names = [*names]
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(each)}</td>' for each in row)}</tr>" for row in rows)
    label = _text(", ".join(names))
    start = f'<div class="scroll" tabindex="0" role="group" aria-label="{label}"><table><thead><tr>{head}</tr></thead>'
    return Markup(f"{start}<tbody>{body}</tbody></table></div>")


def diff_html(text: str) -> Markup:
    """A patch: its lines below each other, those of one kind together."""
    kinds = ((kind, [line for _, line in lines]) for kind, lines in groupby(_diff_lines(text), lambda each: each[0]))
    spans = (f'<span class="{kind}">{_text(chr(10).join(lines))}</span>' for kind, lines in kinds)
    return Markup(f'<div class="diff" tabindex="0" role="group" aria-label="Changes">{"".join(spans)}</div>')


def _diff_lines(text: str) -> Iterator[tuple[str, str]]:
    is_inside = False
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("diff "):
            is_inside = False
            yield "file", line
        elif line.startswith("@@"):
            is_inside = True
            yield "hunk", line
        else:
            yield (_KINDS.get(line[:1], "same") if is_inside else "meta"), line


def _text(text: str) -> Markup:
    return Markup.escape(printable(text, keep=KEPT_IN_PAGES))


def _is_small(value: object) -> bool:
    level, count = [value], 0
    for _ in range(MOST_LEVELS):
        level = [part for each in level for part in _parts_of(each)]
        count += len(level)
        if not level or count > MOST_PARTS:
            break
    return not level and count <= MOST_PARTS


def _parts_of(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _drawn(value: object) -> str:
    match value:
        case str():
            return text_html(value) if "\n" in value else f"<span>{_text(value)}</span>"
        case dict() if value:
            pairs = (f"<div><dt>{_text(name)}</dt><dd>{_drawn(each)}</dd></div>" for name, each in value.items())
            return f"<dl>{''.join(pairs)}</dl>"
        case list() if value:
            return _rows(value) or f"<ul>{''.join(f'<li>{_drawn(each)}</li>' for each in value)}</ul>"
        case dict() | list():
            return "<span>none</span>"
    return f"<span>{_text(json.dumps(value))}</span>"


def _rows(values: list[object]) -> str:
    """A table of several small objects; empty if they are none."""
    rows = [each for each in values if isinstance(each, dict)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    fits = 1 < len(rows) == len(values) and len(names) <= MOST_COLUMNS
    if not fits or not all(_fits_cell(each) for row in rows for each in row.values()):
        return ""
    return table_html(names, ([row.get(name) for name in names] for row in rows))


def _fits_cell(value: object) -> bool:
    if isinstance(value, list):
        return (
            len(value) <= MOST_IN_CELL
            and not any(isinstance(each, list) for each in value)
            and all(map(_fits_cell, value))
        )
    return not isinstance(value, dict) and not (isinstance(value, str) and ("\n" in value or len(value) > LONGEST_CELL))


def _cell(value: object) -> Markup:
    if isinstance(value, Markup):
        return value
    return _text(", ".join(map(_plain, value)) if isinstance(value, list) else _plain(value))


def _plain(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def result_html(result: ShownResult) -> Markup:
    return markdown_as_html(result.text) if result.is_markdown else Markup("<pre>{}</pre>").format(result.text)


def markdown_as_html(text: str) -> Markup:
    """Render CommonMark and tables. HTML is shown as text, and an image, which a page may not load, as a link."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + TOP_LEVEL - 1, LOWEST_LEVEL)}"
    html = parser.renderer.render(tokens, parser.options, {})  # the parser escapes everything
    return Markup(printable(html, keep=KEPT_IN_PAGES))  # now, because the text may name characters: `&#x202e;`


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
