"""Words and numbers for people: one line, no control characters, units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from codex_multi_role.errors import denied_in_words
from codex_multi_role.host.spelling import printable
from codex_multi_role.option import as_typed
from codex_multi_role.run_folder.cost import Cost, dollars

ELLIPSIS = "..."
DAYS_FROM_HOURS = 72
TESTS_NAMED = 3
UNPRICED = "unpriced"


def one_line(value: object, limit: int = 200) -> str:
    """Return ``value`` as at most ``limit`` printable characters, so that a model's text cannot control a terminal."""
    line = " ".join(filter(None, map(printable, str(value).split())))
    return line if len(line) <= limit else line[: limit - len(ELLIPSIS)].rstrip() + ELLIPSIS


def columns_of(text: str) -> int:
    """Columns that ``text`` takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # here: most tables are ASCII, and rich loads slowly

    return cell_len(text)


def wrapped(line: str, width: int) -> list[str]:
    """The line, broken at blanks outside backquotes if it is too wide; further lines are indented to its text.

    A word that then does not fit stands at the margin.
    """
    indent = re.match(r"\s*(?:\S+\s{2,})?", line)
    start = indent.end() if indent is not None and indent.end() <= width // 2 else 0
    lines = [line[:start]]
    for word in re.findall(r"\s*(?:`[^`]*`\S*|\S+)", line[start:]):
        if lines[-1].strip() and columns_of(lines[-1] + word) > width:
            fits = start + columns_of(word.lstrip()) <= width
            lines.append(" " * (start * fits) + word.lstrip())
        else:
            lines[-1] += word
    return lines


def cut(words: str, width: int) -> str:
    """``words`` in at most ``width`` columns, without a part of a word unless the first one is longer than that.

    Then its end is left as well. Wide characters, which have no blanks between words, are cut anywhere.
    """
    if columns_of(words) <= width:
        return words
    kept = first_columns(words, max(1, width - len(ELLIPSIS))).rstrip()
    whole, _, part = kept.rpartition(" ")
    is_whole = words[len(kept) : len(kept) + 1] == " " or columns_of(part) > len(part)
    end = "" if is_whole or whole.strip() else words.split()[0][-width // 3 :]
    return f"{kept if is_whole else whole.rstrip(' ,:') or kept[: -len(end)]}{ELLIPSIS}{end}"


def first_columns(text: str, width: int) -> str:
    """What a terminal shows of ``text`` in so many columns, in which it does not fit."""
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size  # as above

    return set_cell_size(text, width)


def named(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(one_line, names[:most])) + more


def plural(number: float, noun: str) -> str:
    """``3 cycles``, ``1 cycle``, ``2 processes``."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,.0f} {noun}{ending}"


def duration(seconds: float) -> str:
    """``0.4 s``, ``36 s``, ``2 min 05 s``, ``1 h 02 min``, ``12 days``."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{seconds:.1f} s" if round(seconds, 1) < 10 else f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    if minutes < DAYS_FROM_HOURS * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return plural(minutes / (24 * 60), "day")


def ago(at: str) -> str:
    """``12 s ago``, ``3 min ago``, ``5 h ago``, ``12 days ago``; empty without a moment."""
    passed = duration(round(seconds_between(at, datetime.now(UTC).isoformat()))).replace(".0 ", " ")
    return f"{' '.join(passed.split()[:2])} ago" if at else ""


def compact(number: float) -> str:
    """``950``, ``12.3k``, ``4.5M``."""
    for size, unit in ((1_000_000, "M"), (10_000, "k")):
        if number >= size:
            return f"{number / (1000 if unit == 'k' else size):.1f}{unit}"
    return f"{number:.0f}"


def moment(at: str) -> datetime:
    """Convert an event's ``at`` to local time."""
    return datetime.fromisoformat(at).astimezone()


def clock(at: str) -> str:
    """Format an event's ``at`` as ``HH:MM:SS`` local time."""
    return f"{moment(at):%H:%M:%S}"


def seconds_between(start: str, end: str) -> float:
    """Return the seconds between the ``at`` of two events; 0 if one is empty or they are in reverse order."""
    return max(0.0, (moment(end) - moment(start)).total_seconds()) if start and end else 0.0


def amounts(of: Mapping[str, float]) -> list[str]:
    """``["18 turns", "48.8k tokens", "$1.20", "9 min 00 s"]``: turns, tokens, cost and seconds."""
    units = {"seconds": duration, "cost": dollars}
    return [units[name](amount) if name in units else f"{compact(amount)} {name}" for name, amount in of.items()]


def figure(name: str, amount: float) -> str:
    """``1,200``, or ``$1.20`` of a cost."""
    return dollars(amount) if name == "cost" else f"{amount:,.0f}"


def part_of_total(name: str, part: float, total: float) -> str:
    """``8 of 10 turns``, ``$0.20 of $0.30``."""
    return f"{figure(name, part)} of {figure(name, total)}" + ("" if name == "cost" else f" {name}")


def price(cost: Cost) -> str:
    """``$1.20``; empty if any turn has no price."""
    return "" if cost.known is None else dollars(cost.known)


def cost_in_words(cost: Cost) -> str:
    """The same where it must not be left out: ``unpriced``."""
    return price(cost) or UNPRICED


def costs_by_step(costs: Mapping[str, Cost]) -> str:
    """``plan $0.10, solve not known``; empty for a single step, and if nothing has a price."""
    if len(costs) < 2 or not any(cost.amount for cost in costs.values()):
        return ""
    return ", ".join(f"{one_line(step)} {price(cost) or 'not known'}" for step, cost in costs.items())


def failed_tests(tests: Mapping[str, Any], most: int = TESTS_NAMED) -> str:
    """``test_a::test_one, test_a::test_two and 3 more``; empty if the test result names no failed test.

    ``tests``: a ``result.json``, or the fields of `TestsEnded`.
    """
    names = [one_line(each["test"] if isinstance(each, Mapping) else each) for each in tests.get("failures") or ()]
    more = int(tests.get("failed") or 0) + int(tests.get("errors") or 0) - len(names[:most])
    return ", ".join(names[:most]) + (f" and {more} more" if names and more > 0 else "")


def answer_in_words(approved: bool, option: str, values: Mapping[str, object]) -> str:
    """``approved``, ``rejected`` or the chosen option, and the values that a person gave."""
    given = ", ".join(f"{name}: {one_line(as_typed(value))}" for name, value in values.items())
    return f"{one_line(option) or ('approved' if approved else 'rejected')}{f' ({given})' if given else ''}"


def judged(tests: Mapping[str, object]) -> str:
    """``passed`` if no failure is new; of an older result, pytest's own status."""
    return one_line(tests.get("verdict") or tests["status"])


def verdict(tests: Mapping[str, Any]) -> str:
    """``failed: 3 passed, 1 failed``: the status of a test result, its nonzero counts, and what hides others."""
    counts = [f"{tests[name]} {name}" for name in ("passed", "failed", "errors", "skipped") if tests.get(name)]
    counts += [f"{number} {one_line(name)}" for name, number in (tests.get("other_counts") or {}).items()]
    told = f"{judged(tests)}: {', '.join(counts + _beside_baseline(tests))}" if counts else judged(tests)
    unseen = f"not seen: {one_line(tests['not_seen'])}" if tests.get("not_seen") else ""
    return "; ".join(filter(None, [told, denied_in_words(tests.get("forbidden") or {}), unseen]))


BEFORE = "tests before the first change"


def running_before(last_seconds: float) -> str:
    """``running (last: 1 min 01 s; skip: --no-baseline)``."""
    last = f"last: {duration(last_seconds)}; " if last_seconds else ""
    return f"running ({last}skip: --no-baseline)"


def verdict_before(baseline: Mapping[str, Any]) -> str:
    """As `verdict`, of the tests before the first change: ``failed: 3 passed, 2 failed (1 left by run 2026…)``.

    If they run, their ``seconds`` are those of the last time.
    """
    if baseline["status"] == "running":
        return running_before(baseline["seconds"])
    left = ", ".join(f"{count} left by run {run}" for run, count in baseline["left_by"].items())
    return f"{verdict(baseline)} ({left})" if left else verdict(baseline)


def _beside_baseline(tests: Mapping[str, object]) -> list[str]:
    """``9 as before, 1 new``: what a failed result says beside the tests before the first turn; empty without them."""
    if not tests.get("verdict") or tests.get("without_baseline"):
        return []
    shown = {"still_failing": "failing as before", "new_failures": "new", "fixed": "fixed"}
    shown |= {"dropped": "dropped", "removed": "gone", "moved": "moved"}
    found = [f"{tests[name]} {words}" for name, words in {**shown, "flaky": "flaky"}.items() if tests.get(name)]
    return [*found, "0 new"] if found and not tests.get("new_failures") else found
