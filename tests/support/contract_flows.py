"""Random flows that read answers everywhere, and random answers that satisfy a contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from codex_multi_role.catalog.value_uses import ITEM, Path
from codex_multi_role.flow.answer_needs import Contract, Need
from codex_multi_role.reading.json_types import Json

FIELDS = ("a", "n", "ok", "tasks", "c.d", "tasks[0]")
TEXTS = (
    *("Do {{ p }}.",) * 8, "Do {{ p + 1 }} of {{ q }}.",
    "Do {{ p }}.", "{{ p }}", "{{ p }}", "Do {{ p + 1 }}.", "{{ p | default('-') }}", "{{ p | join(', ') }}",
    "{% if p %}{{ q }}{% endif %}", "{% for x in p %}{{ x.t }}, {% endfor %}", "{{ p | length }}",
    "{{ p | map(attribute='t') | list }}", "{{ p | selectattr('ok') | list }}", "{{ p | upper }}.",
    "{{ p is defined }}", "{{ p.t.u }}", "{{ p | sum }}.", "{{ p.items() | list }}", "{{ p - q }}",
    "{{ p if q else 0 }}", "{{ p[q] }}.", "{{ '%d of' % p }}", "{{ p | round(1) }}.", "{{ p ~ q }}",
    "{{ p | select('lt', 7) | list }}.", "{% set y = p %}{{ y.t }}", "{{ (p | first).t }}.", "{{ 'x' + p }}",
    "{% for g in p | groupby('t') %}{{ g.grouper }}{% endfor %}", "{% for b in p | batch(2) %}{{ b[0].t }}{% endfor %}",
    "{{ (p | max(attribute='n')).t }}.", "{% macro m(x) %}{{ x.t }}{% endmacro %}{{ m(p) }}", "{{ p is none }}",
    "{% for x in p if x.ok %}{{ x.t }}{% endfor %}", "{{ p[:2] }}.", "{{ p + q }}", "{{ p in q }}",
    "{{ p | sort | first }}.", "{{ range(p) | list }}", "{{ p.split(',')[0] }}.", "{{ p | int }}.",
)  # fmt: skip
"""Templates, where ``p`` and ``q`` are paths of answers."""
CONDITIONS = (
    *("p", "p >= 3", "p == 'x'") * 3,
    "p", "not p", "p >= 3", "p == 'x'", "p in ['x', 'y']", "p is defined and p > 2", "p or q", "p and q < 1", "p < q",
    "p | length > 1", "p == q", "'x' in p", "p.t", "p is none or p > 1", "p[0].ok", "p | default(0) > 2",
    "p | selectattr('ok') | list", "3 < p < 9", "p == true",
)  # fmt: skip
VALUES: tuple[object, ...] = (
    "x", "one", "3", "false", "a, b", 0, 3, 12, 2.5, -1, True, False, None, [], ["a"], [1, 2], [None],
    [{"t": "a", "id": "A"}], [{"t": 1, "ok": True, "needs": ["A"]}, {}], {}, {"t": {"u": 1}}, {"d": "x"}, [[]],
)  # fmt: skip
Needs = Mapping[Path, Need]
SCHEMAS: tuple[Json, ...] = (
    {},
    {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": ["number", "null"]}}, "required": ["a"]},
    {
        "type": "object",
        "properties": {"tasks": {"type": "array", "items": {"type": "object"}}, "ok": {"type": "boolean"}, "n": {}},
        "additionalProperties": False,
    },
)


@st.composite
def flows_that_read(draw: st.DrawFn) -> list[Json]:
    """A flow and one that it may call, ``inner``; the first step is an ask without templates."""
    inner = _steps(draw, "i", [], may_call=False)
    outer = _steps(draw, "s", ["roles.one", "steps.s0.handoff"], may_call=True)
    flow: Json = {"vars": {"v": 0}, "steps": outer}
    if draw(st.booleans()):
        paths = _paths(outer)
        flow["result"] = {"title": "Result", "text": _text(draw, paths), "figures": {"n": _text(draw, paths)}}
    return [flow, {"name": "inner", "inputs": {"n": draw(st.sampled_from([1, "x"]))}, "vars": {"v": 0}, "steps": inner}]


INNER: Json = {
    "name": "inner",
    "inputs": {"l": {"type": "list", "required": True}},
    "steps": [{"ask": "one", "prompt": "Do {% for x in inputs.l %}{{ x.t }}{% endfor %}."}],
}
SUFFICIENT: Sequence[Json] = (
    {"ask": "two", "prompt": "Do {{ p }}."},
    {"ask": "two", "prompt": "Do {{ p.t.u }} of {{ p.n + 1 }}."},
    {"ask": "two", "prompt": "{% for x in p %}{{ x.t }}, {% endfor %}."},
    {"ask": "two", "prompt": "{% set x = p %}Do {{ x.t }}."},
    {"ask": "two", "prompt": "{% macro m(x) %}{{ x.t > 3 }}{% endmacro %}Do {{ m(p) }}."},
    {"ask": "two", "prompt": "Do {{ (p | first).t }} and {{ (p | last).u }}."},
    {"ask": "two", "prompt": "Do {{ 'x' + p }}."},
    {"ask": "two", "prompt": "Do {{ p | select('lt', 7) | list }}."},
    {
        "ask": "two",
        "prompt": "Do {% for g in p | groupby('k.u') %}{{ g.list | map(attribute='t') | join }}{% endfor %}.",
    },
    {"ask": "two", "prompt": "Do {% for b in p | batch(2) %}{% for x in b %}{{ x.t }}{% endfor %}{% endfor %}."},
    {"ask": "two", "prompt": "Do {% if p is defined %}{% for x in p %}{{ x.t.u }}{% endfor %}{% endif %}."},
    {"call": "inner", "with": {"l": "{{ p }}"}},
    {"ask": "two", "with": {"a": "Do {{ p }}.", "b": ["{{ p | default('-') }}"]}},
    {"ask": "two", "for_each": "{{ p }}", "max_items": 2, "prompt": "Do {{ item.t }}, {{ item.n - 1 }}."},
    {"ask": ["two", "three"], "prompt": "Do {{ p | join(', ') }}."},
    {"check": "answer", "with": {"text": "Of {{ p }}, {{ p | join(', ') }}"}},
    {"check": "answer", "with": {"text": "{{ p | map(attribute='t') | join(', ') }}."}},
    {"review": "Is {{ p.t }} right?", "show": "See {{ p.u }}."},
    {"ask": "two", "set": {"v": "{{ p * 2 }}"}, "next": [{"when": "vars.v > 1000000"}]},
    {"ask": "two", "next": [{"when": "p >= 3"}]},
    {"ask": "two", "next": [{"when": "p == 'x'"}]},
    {"ask": "two", "next": [{"when": "not p"}]},
    {"ask": "two", "next": [{"when": "p | selectattr('ok') | list"}]},
)
"""Steps that can do their work with every answer that satisfies its contract. Each ``p`` is a path of its own."""


@st.composite
def flows_that_contracts_suffice(draw: st.DrawFn) -> list[Json]:
    """A flow without ways back, guards and failures that are skipped."""
    steps: list[Json] = [{"id": "s0", "ask": "one"}]
    for number, chosen in enumerate(draw(st.lists(st.sampled_from(SUFFICIENT), min_size=1, max_size=5)), 1):
        before = [each["id"] for each in steps if isinstance(each.get("ask"), str) and "for_each" not in each]
        path = f"steps.{draw(st.sampled_from(before))}.f{number}"
        step = {"id": f"s{number}", **_with_path(chosen, path)}
        routes = [{**route, "to": f"s{number + 1}"} for route in step.get("next", ())]
        steps.append(step | ({"next": routes} if routes else {}))
    steps.append({"id": f"s{len(steps)}", "ask": "three"})
    return [{"vars": {"v": 0}, "steps": steps}, INNER]


def _with_path(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: each if key in ("ask", "check") else _with_path(each, path) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_path(each, path) for each in value]
    return "".join(path if word == "p" else word for word in _words(value)) if isinstance(value, str) else value


def _steps(draw: st.DrawFn, prefix: str, more: list[str], *, may_call: bool) -> list[Json]:
    steps: list[Json] = [{"id": f"{prefix}0", "ask": "one", "max_visits": 2}]
    for number in range(1, draw(st.integers(2, 4))):
        paths = [*_paths(steps), *(f"{each}.{field}" for each in more for field in FIELDS)]
        step = {"id": f"{prefix}{number}", "max_visits": 2, **_work(draw, paths, may_call=may_call)}
        steps.append(step | _around(draw, paths, step))
    for number, step in enumerate(steps):
        if draw(st.booleans()):
            step["next"] = _routes(draw, _paths(steps[: number + 1]), steps, number)
    return steps


def _paths(steps: Sequence[Json]) -> list[str]:
    """Those of answers that a step may read after ``steps``."""
    found = list[str]()
    for step in steps:
        if "ask" in step:
            several = "for_each" in step or isinstance(step["ask"], list)
            of = f"steps.{step['id']}" + (".results[0]" if several else "")
            found += [f"{of}.{field}" for field in FIELDS]
        if isinstance(step.get("ask"), list):
            found += [f"steps.{step['id']}.by_role.two.{field}" for field in FIELDS]
        if step.get("call"):
            found += [f"steps.{step['id']}.steps.i0.{field}" for field in FIELDS]
    return found


def _text(draw: st.DrawFn, paths: Sequence[str]) -> str:
    return _filled(draw, draw(st.sampled_from(TEXTS)), paths)


def _condition(draw: st.DrawFn, paths: Sequence[str]) -> str:
    return _filled(draw, draw(st.sampled_from(CONDITIONS)), paths)


def _filled(draw: st.DrawFn, template: str, paths: Sequence[str]) -> str:
    """With paths instead of the words ``p`` and ``q``."""
    chosen = {name: draw(st.sampled_from(paths)) for name in ("p", "q")}
    return "".join(chosen.get(word, word) for word in _words(template))


def _words(template: str) -> list[str]:
    words, last = [""], False
    for character in template:
        is_name = character.isalnum() or character == "_"
        words = [*words[:-1], words[-1] + character] if is_name and last else [*words, character]
        last = is_name
    return words


def _work(draw: st.DrawFn, paths: Sequence[str], *, may_call: bool) -> Json:
    whole = f"{{{{ {draw(st.sampled_from(paths))} }}}}"
    role = draw(st.sampled_from(["one", "two"]))
    kinds: dict[str, Json] = {
        "ask": {"ask": role, "prompt": _text(draw, paths)},
        "given": {"ask": role, "with": {"a": _text(draw, paths), "b": [whole]}},
        "each": {"ask": role, "for_each": whole, "max_items": draw(st.integers(1, 3)), **_of_items(draw, paths)},
        "several": {"ask": ["one", "two"], "prompt": _text(draw, paths)},
        "chosen": {"ask": "{{ item.t }}", "roles": ["one", "two"], "for_each": whole, "max_items": 3},
        "answer": {"check": "answer", "with": {"text": _text(draw, paths)}},
        "choose": {"check": "choose", "with": {"candidates": whole, "by": [{"key": "n", "prefer": "highest"}]}},
        "review": {"review": _text(draw, paths), "show": _text(draw, paths)},
        "call": {"call": "inner", "with": {"n": whole}},
    }
    return kinds[draw(st.sampled_from([each for each in kinds if may_call or each != "call"]))]


def _of_items(draw: st.DrawFn, paths: Sequence[str]) -> Json:
    prompts = ["Do {{ item }}.", "{{ item.t }}", "Do {{ item.t }} of {{ item.n + 1 }}.", _text(draw, paths)]
    around = {"needs": "{{ item.needs }}", "concurrency": f"{{{{ {draw(st.sampled_from(paths))} }}}}"}
    some = draw(st.sets(st.sampled_from(sorted(around))))
    return {"prompt": draw(st.sampled_from(prompts)), **{key: around[key] for key in sorted(some)}}


def _around(draw: st.DrawFn, paths: Sequence[str], step: Json) -> Json:
    alone = isinstance(step.get("ask"), str) and "for_each" not in step
    own = [] if not alone else [f"steps.{step['id']}.{field}" for field in FIELDS]
    path = draw(st.sampled_from([*paths, *own]))
    values: Json = {
        "set": {"v": draw(st.sampled_from([f"{{{{ vars.v + {path} }}}}", f"{{{{ {path} }}}}"]))},
        "on_error": "skip",
        "retry": {"attempts": 2, "backoff_seconds": 0},
    }
    return {key: values[key] for key in sorted(draw(st.sets(st.sampled_from(sorted(values)), max_size=1)))}


def _routes(draw: st.DrawFn, paths: Sequence[str], steps: Sequence[Json], number: int) -> list[Json]:
    ways = [{"to": each["id"]} for each in steps[max(0, number - 1) :]] + [{"end": "done"}]
    routes = draw(st.lists(st.sampled_from(ways), min_size=1, max_size=2))
    return [{"when": _condition(draw, paths), **route} for route in routes]


def answer_to(contract: Contract, chosen: Random) -> dict[str, Any]:
    """An answer that mostly satisfies ``contract``: values of every other kind where it says nothing."""
    needs = {need.path: need for need in contract}
    more = {key: chosen.choice(VALUES) for key in ("a", "n", "ok", "tasks", "c") if chosen.random() < 0.6}
    return {"summary": "fine", **more, **_object(chosen, needs, ())}


def _value(chosen: Random, needs: Needs, path: Path) -> object:
    need = needs.get(path, Need(path))
    if need.takes_null and chosen.random() < 0.1:
        return None
    if need.type == "object":
        return _object(chosen, needs, path)
    if need.type == "array":
        return _array(chosen, needs, path, need.most)
    return chosen.choice([each for each in VALUES if not (need.misuse(each) or need.lack(each))])


def _object(chosen: Random, needs: Needs, path: Path) -> dict[str, Any]:
    found = {}
    for part in _parts(needs, path):
        need = needs.get((*path, part), Need((*path, part)))
        if isinstance(part, str) and (need.is_required or chosen.random() < 0.8):
            found[part] = _value(chosen, needs, (*path, part))
    return found


def _array(chosen: Random, needs: Needs, path: Path, most: int | None) -> list[object]:
    numbers = [each for each in _parts(needs, path) if isinstance(each, int)]
    least = max([len(numbers), *(each + 1 if each >= 0 else -each for each in numbers)])
    length = chosen.randint(min(least, most or least), max(least, min(3, most or 3)))
    parts = ([each for each in (number, number - length) if each in numbers] for number in range(length))
    return [_value(chosen, needs, (*path, part[0] if part else ITEM)) for part in parts]


def _parts(needs: Needs, path: Path) -> list[Any]:
    """What the needs below a path name next."""
    return list(dict.fromkeys(each[len(path)] for each in needs if len(each) > len(path) and each[: len(path)] == path))
