"""The sections of the page in order, except the drawings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from codex_multi_role.presentation.progress import RoleProgress
from codex_multi_role.presentation.story import Story
from codex_multi_role.presentation.wording import compact, duration, one_line, plural
from codex_multi_role.report.entries import ReportEntry
from codex_multi_role.report.heading import Heading
from codex_multi_role.report.markup import NOTHING, asset, chip, joined, table, time
from codex_multi_role.report.texts import Text

NAMES = {
    "facts": "Facts",
    "timeline": "Timeline",
    "flow": "Flow",
    "what-happened": "Turns",
    "states": "Tasks",
    "warnings": "Warnings",
}
NUMBER = "number"
ROLE_HEADINGS = (
    *(("role", ""), ("last status", ""), ("turns", NUMBER)),
    *(("tokens in", NUMBER), ("out", NUMBER), ("time", NUMBER)),
)
TASK_HEADINGS = (("task", ""), ("unit", ""), ("state", ""), ("when", ""), ("reason", ""))
TASK_TONES = {"COMPLETED": "good", "FAILED": "bad", "SKIPPED": "warn"}


def head(heading: Heading, policy: str, style: Markup, version: str) -> Markup:
    return Markup(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="{}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="generator" content="codex-multi-role {}">\n'
        "<title>{}: {}</title>\n<style>{}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#what-happened">Skip to the turns</a>\n'
    ).format(policy, version, heading.outcome, one_line(heading.goal, 80), style)


def banner(heading: Heading, written: str) -> Markup:
    """Render what to read first: the goal, how the run ended, what it cost, what to type next."""
    figure = Markup("<li><b>{}</b> <span>{}</span></li>\n")
    following = Markup(
        '<p class="next"><span>Next</span> <code id="next-command">{}</code>'
        ' <button type="button" id="copy" hidden>Copy</button></p>\n'
    )
    return Markup(
        '<header class="top">\n<div class="inner">\n<p class="run">Run <code>{}</code></p>\n<h1>{}</h1>\n'
        '<p class="ending {}"><strong>{}</strong> <span>{}</span></p>\n<p class="meaning">{}</p>\n'
        '<ul class="figures" aria-label="Totals">\n{}</ul>\n{}</div>\n</header>\n'
    ).format(
        heading.run_id,
        heading.goal,
        *(heading.tone, heading.outcome, heading.reason),
        f"{heading.status}, {heading.meaning or f'this is what there was at {written}'}",
        joined(figure.format(*each) for each in heading.figures),
        following.format(heading.next) if heading.next else NOTHING,
    )


def navigation(names: Iterable[str]) -> Markup:
    """Render links to the sections in ``names``."""
    links = joined(Markup('<li><a href="#{}">{}</a></li>\n').format(name, NAMES[name]) for name in names)
    piece = Markup(
        '<nav class="bar" aria-label="Report">\n<div class="inner">\n<ul>\n{}</ul>\n{}</div>\n</nav>\n<main>\n'
    )
    return piece.format(links, asset("tools.html"))


def section(name: str, title: str, inside: Markup) -> Markup:
    piece = Markup('<section id="{0}" aria-labelledby="{0}-heading">\n<h2 id="{0}-heading">{1}</h2>\n{2}</section>\n')
    return piece.format(name, title, inside)


def facts(heading: Heading, roles: Sequence[RoleProgress], answer: Text | None) -> Markup:
    fact = Markup("<div><dt>{}</dt> <dd>{}</dd></div>\n")
    fact_list = joined(fact.format(*each) for each in heading.facts)
    people = table("Roles", ROLE_HEADINGS, map(_role, roles)) if roles else NOTHING
    columns = Markup('<div class="columns">\n<dl class="facts">\n{}</dl>\n{}</div>\n').format(fact_list, people)
    return section("facts", "Facts", joined([columns, _files(heading), _answer(answer)]))


def _role(role: RoleProgress) -> list[object]:
    tokens = (compact(role.input_tokens), compact(role.output_tokens))
    return [one_line(role.name), one_line(role.state.replace("_", " ")), role.turns, *tokens, duration(role.seconds)]


def _files(heading: Heading) -> Markup:
    if not heading.files:
        return NOTHING
    names = joined(Markup("<li><code>{}</code></li>\n").format(name) for name in heading.files)
    more = Markup("<li>and {} more</li>\n").format(heading.more_files) if heading.more_files else NOTHING
    return Markup('<h3>Files changed</h3>\n<ul class="files">\n{}{}</ul>\n').format(names, more)


def _answer(answer: Text | None) -> Markup:
    if answer is None:
        return NOTHING
    cut = note("Cut here: the whole is answer.md in the run's folder.") if answer.of else NOTHING
    return Markup('<h3>Answer</h3>\n<pre class="answer" tabindex="0">{}</pre>\n{}').format(answer.text, cut)


def note(words: str) -> Markup:
    return Markup('<p class="cut">{}</p>\n').format(words)


def what_happened(entries: Iterable[ReportEntry], number: int) -> Iterator[Markup]:
    """Render ``number`` entries, of which only one at a time is held."""
    yield Markup(
        '<section id="what-happened" aria-labelledby="turns-heading">\n<div class="heading-row">\n'
        '<h2 id="turns-heading">What happened</h2>\n<p id="count" role="status">{}</p>\n'
        '<button type="button" id="open-all" hidden>Open all</button>\n'
        '<button type="button" id="close-all" hidden>Close all</button>\n</div>\n'
    ).format("1 entry" if number == 1 else f"{number:,} entries")
    notice = "What was said in each turn is shown by a script, which this viewer does not run."
    yield Markup('<p class="cut" id="no-script">{}</p>\n').format(notice)
    if not number:
        yield note("Nothing: no turn was begun.")
    yield Markup('<div id="entries">\n')
    yield from map(_entry, entries)
    yield Markup("</div>\n</section>\n")


def _entry(entry: ReportEntry) -> Markup:
    chips = joined((chip(each.words, each.tone) for each in (entry.status, *entry.chips)), " ")
    return Markup(
        '<details class="entry" id="{}" data-kind="{}" data-tone="{}">\n'
        '<summary><span class="at">{}</span> <span class="who"><b>{}</b> {}</span> <span class="about">{} {}</span>'
        ' <span class="cost">{}</span> <span class="found" hidden></span></summary>\n<div class="body"></div>\n'
        '<script type="application/json">{}</script>\n</details>\n'
    ).format(
        *(entry.id, entry.kind, entry.status.tone, time(entry.at), entry.who, entry.what),
        *(chips, entry.about, entry.cost),
        Markup(entry.data),  # JSON without anything that HTML would interpret: see `texts.embedded`
    )


def tasks(states: Mapping[str, Any]) -> Markup:
    """Render the tasks; ``states`` as in `ToldStates.as_json`."""
    run = Markup("<p>The run: {}</p>\n").format(_history(states["run"])) if states["run"] else NOTHING
    rows = map(_task, states["items"])
    return section("states", "Tasks", run + (table("Tasks", TASK_HEADINGS, rows) if states["items"] else NOTHING))


def _task(task: Mapping[str, Any]) -> list[object]:
    unit, state = Markup("<code>{}</code>").format(task["unit"]), str(task["state"])
    status = chip(one_line(state, 40), TASK_TONES.get(state, "idle"))
    return [one_line(task["item"], 80), unit, status, _history(task), one_line(task["reason"], 500)]


def _history(states: Mapping[str, Any]) -> Markup:
    return joined(
        (Markup("{} {}").format(one_line(each["state"], 40), time(each["at"])) for each in states["history"]), " → "
    )


def warnings(story: Story) -> Markup:
    items = [Markup("<li>{} {}</li>\n").format(time(each.at), each.words) for each in story.notes]
    if story.notes_left_out:
        items.append(Markup("<li>and {} more, in events.jsonl</li>\n").format(story.notes_left_out))
    return section("warnings", "Warnings", Markup('<ul class="notes">\n{}</ul>\n').format(joined(items)))


def foot(written: str, version: str, cut_at: int, script: Markup) -> Markup:
    return Markup(
        "</main>\n<footer>\n<p>Written {} by codex-multi-role {}; times are of that zone. Texts of more than {} are "
        "cut here, and say where the whole lies in the run's folder. Known secrets are masked.</p>\n</footer>\n"
        "{}<script>{}</script>\n</body>\n</html>\n"
    ).format(written, version, plural(cut_at, "character"), asset("help.html"), script)
