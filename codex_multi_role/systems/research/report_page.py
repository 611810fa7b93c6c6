"""A research report as one HTML page that loads nothing and runs nothing."""

from __future__ import annotations

from html import escape

from codex_multi_role.systems.research.searching.addresses import is_web_address
from codex_multi_role.systems.research.text import Research, body_lines

_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "body{color:#222;background:#fff}"
    "h1,h2,h3{line-height:1.25}table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;"
    "padding:.3rem .5rem;text-align:left;vertical-align:top}a{color:#0b57a4}li:target{background:#fff3c4}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8ab8f0}"
    "li:target{background:#443a12}}"
)


def page(research: Research) -> str:
    """The whole report; a citation links to its source. HTML written by models is shown as text."""
    from markdown_it import MarkdownIt  # imported here: most runs write no report

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    body = markdown.render("\n".join(body_lines(research, lambda name: f"[{name}](#source-{name})")))
    sources = "\n".join(map(_source, research.sources))
    return (
        '<!doctype html>\n<html><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(research.question)}</title><style>{_STYLE}</style></head><body>\n"
        f"{body}<h2>Sources</h2>\n<ul>\n{sources}\n</ul>\n</body></html>\n"
    )


def _source(source: dict[str, object]) -> str:
    address = str(source["address"])
    place = escape(address)
    if is_web_address(address):
        place = f'<a href="{place}" rel="noopener noreferrer">{place}</a>'
    parts = [escape(str(source["title"])), place, escape(str(source["date"]))]
    return f'<li id="source-{source["id"]}"><b>{source["id"]}</b> {", ".join(part for part in parts if part)}</li>'
