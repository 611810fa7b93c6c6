"""Former keys of steps, which load through 0.x: nodes are rewritten, with their marks, before they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import yaml

TEXT, MAP, LIST, TRUTH = (f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq", "bool"))
Pair = tuple[yaml.Node, yaml.Node]
SHORT_FOR = {"for_each": "items", "review": "question"}
"""The first key of a group, which stands alone if the group is not a mapping."""
MOVED = {
    **{key: ("for_each", key) for key in ("as", "concurrency", "max_items", "needs", "until")},
    **{"on_item_error": ("for_each", "on_failure"), "merge": ("isolate", "merge")},
    **{"max_visits": ("limits", "visits"), "max_depth": ("limits", "depth")},
    **{key: ("review", key) for key in ("show", "options", "fields")},
    **{"time_limit_seconds": ("review", "after", "seconds"), "default": ("review", "after", "answer")},
}
"""The former keys of a step that are now keys of a group, and where."""
NOW = {
    **{key: f"`{': {'.join(path)}{'}' * (len(path) - 1)}`" for key, path in MOVED.items()},
    **{"on_item_error": "`for_each: {on_failure: finish}` or `cancel`", "on_bad": "`allow: [bad]`"},
    **{"on_error": "`allow: [bad, failed]`, and in `for_each` for its items", "repeatable": "`once: true`"},
}


class Former(NamedTuple):
    """A step with former ``keys``: the ``written`` mapping, and the ``pairs`` in its place."""

    written: yaml.MappingNode
    pairs: list[Pair]
    keys: list[str]


def former_steps(root: yaml.Node | None) -> Iterator[Former]:
    """The steps of a flow that have keys of a former spelling, and none of the present one alone."""
    flow = _given(root)
    lists = [flow[key][1].value for key in ("steps", "finally") if isinstance(_part(flow, key), yaml.SequenceNode)]
    for step in (each for steps in lists for each in steps if isinstance(each, yaml.MappingNode)):
        pairs = _given(step)
        keys = [key for key in pairs if key in NOW]
        if keys and not _is_present(pairs):
            yield Former(step, _rewritten(pairs), keys)


def rewrite(root: yaml.Node | None) -> list[str]:
    """Rewrite the steps of a flow in place; returns the former keys that were found, each once."""
    for former in (found := [*former_steps(root)]):
        former.written.value = former.pairs
    return [*dict.fromkeys(key for former in found for key in former.keys)]


def _given(node: yaml.Node | None) -> dict[str, Pair]:
    """The pairs of a mapping by key, with those that ``<<`` merges, which its own replace."""
    found: dict[str, Pair] = {}
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for each in merged if key.value == "<<" else ():
            found = {**_given(each), **found}
        found |= {str(key.value): (key, value)} if key.value != "<<" else {}
    return found


def _is_present(pairs: dict[str, Pair]) -> bool:
    """Whether the step has a key that no former spelling has."""
    mappings = [key for key in ("for_each", "isolate", "review") if isinstance(_part(pairs, key), yaml.MappingNode)]
    return bool(mappings or {"allow", "once", "visits", "depth"} & {*pairs, *_given(_part(pairs, "limits"))})


def _part(pairs: dict[str, Pair], key: str) -> yaml.Node | None:
    """The value of the key; None if it is null or absent."""
    return pairs[key][1] if key in pairs and not pairs[key][1].tag.endswith(":null") else None


def _rewritten(pairs: dict[str, Pair]) -> list[Pair]:
    if "review" in pairs and _part(pairs, "time_limit_seconds") is None:  # then the answer had no effect
        pairs = {key: pair for key, pair in pairs.items() if key != "default"}
    is_fan_out = "for_each" in (groups := _groups(pairs))
    paths = {**MOVED, **({"on_error": ("for_each",)} if is_fan_out else {})}
    moved = {key: paths[key][0] for key in pairs if key in paths and paths[key][0] in groups}
    made: dict[str, Pair] = {}
    for key, pair in pairs.items():
        group = moved.get(key, key if key in moved.values() else "")
        if group and group not in made:
            made[group] = (_text(group, pairs.get(group, pair)[0]), _group(group, moved, pairs, pair[0]))
        elif key in ("on_error", "on_bad") and not group:
            _add(made, "allow", pair[0], _ends(pairs, ("on_error", "on_bad")[is_fan_out:]))
        elif key == "repeatable":
            _add(made, "once", pair[0], _negated(pair[1]))
        elif not group:
            made[key] = pair
    return [pair for key, pair in made.items() if key not in moved.values() or pair[1].value]


def _groups(pairs: dict[str, Pair]) -> list[str]:
    """The groups into which keys can move; a key of any other stays, and is reported."""
    several, isolate = isinstance(_part(pairs, "ask"), yaml.SequenceNode), _part(pairs, "isolate")
    return [
        *(["for_each"] if several or _part(pairs, "for_each") is not None else []),
        *(["review"] if _part(pairs, "review") is not None else []),
        *(["isolate"] if isolate is not None and isolate.value == "worktree" else []),
        *(["limits"] if isinstance(_part(pairs, "limits"), yaml.MappingNode | None) else []),
    ]


def _add(made: dict[str, Pair], name: str, key: yaml.Node, value: yaml.Node | None) -> None:
    if value is not None:
        made.setdefault(name, (_text(name, key), value))


def _group(group: str, moved: dict[str, str], pairs: dict[str, Pair], first: yaml.Node) -> yaml.Node:
    """The mapping of a group: what it was before, and the keys that moved into it."""
    value, after = _part(pairs, group), list[Pair]()
    if not (made := _given(value)) and value is not None and group in SHORT_FOR:
        _add(made, SHORT_FOR[group], pairs[group][0], value)
    for key in (key for key, owner in moved.items() if owner == group and _part(pairs, key) is not None):
        written, given = pairs[key]
        _, *outer, name = MOVED.get(key, ("", key))
        if key == "on_error":
            _add(made, "allow", written, _ends(pairs, [key]))
        elif outer:
            after.append((_text(name, written), given))
            _add(made, "after", written, yaml.MappingNode(MAP, after, written.start_mark))
        else:
            is_stop = (name, given.value) == ("on_failure", "stop")
            _add(made, name, written, _text("finish", given) if is_stop else given)
    return yaml.MappingNode(MAP, [*made.values()], first.start_mark)


def _ends(pairs: dict[str, Pair], keys: Iterable[str]) -> yaml.Node | None:
    """The ends that are allowed; an answer of a role is never bad by itself."""
    meanings = {"skip": ["failed"] if "ask" in pairs else ["bad", "failed"], "continue": ["bad"], "fail": []}
    values = [value for key in keys if (value := _part(pairs, key)) is not None]
    ends = {end for each in values for end in meanings.get(str(each.value), [str(each.value)])}
    made = [_text(end, values[0]) for end in sorted(ends)]
    return yaml.SequenceNode(LIST, made, values[0].start_mark) if made else None


def _negated(value: yaml.Node) -> yaml.Node | None:
    """``once: true`` for ``repeatable: false``; nothing for ``true``, and a wrong value as it is."""
    if value.tag != TRUTH:
        return value
    return _text("true", value, TRUTH) if str(value.value).lower() in ("false", "no", "off") else None


def _text(text: str, marked: yaml.Node, tag: str = TEXT) -> yaml.Node:
    return yaml.ScalarNode(tag, text, marked.start_mark, marked.end_mark)
