"""Random answers that satisfy a contract, where it says nothing with values of every other kind."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from codex_multi_role.catalog.explorations import ITEM, Path
from codex_multi_role.flow.answer_requirements import Contract, FieldRequirement

VALUES: tuple[object, ...] = (
    "x", "one", "3", "false", "a, b", 0, 3, 12, 2.5, -1, True, False, None, [], ["a"], [1, 2], [None],
    [{"t": "a", "id": "A"}], [{"t": 1, "ok": True, "needs": ["A"]}, {}], {}, {"t": {"u": 1}}, {"d": "x"}, [[]],
)  # fmt: skip
Requirements = Mapping[Path, FieldRequirement]


def answer_to(contract: Contract, chosen: Random) -> dict[str, Any]:
    """An answer that mostly satisfies ``contract``: values of every other kind where it says nothing."""
    needs = {need.path: need for need in contract}
    more = {key: chosen.choice(VALUES) for key in ("a", "n", "ok", "tasks", "c") if chosen.random() < 0.6}
    return {"summary": "fine", **more, **_object(chosen, needs, ())}


def _value(chosen: Random, needs: Requirements, path: Path) -> object:
    need = needs.get(path, FieldRequirement(path))
    if need.takes_null and chosen.random() < 0.1:
        return None
    if need.type == "object":
        return _object(chosen, needs, path)
    if need.type == "array":
        return _array(chosen, needs, path, need.most)
    return chosen.choice([each for each in VALUES if not (need.misuse(each) or need.lack(each))])


def _object(chosen: Random, needs: Requirements, path: Path) -> dict[str, Any]:
    found = {}
    for part in _parts(needs, path):
        need = needs.get((*path, part), FieldRequirement((*path, part)))
        if isinstance(part, str) and (need.is_required or chosen.random() < 0.8):
            found[part] = _value(chosen, needs, (*path, part))
    return found


def _array(chosen: Random, needs: Requirements, path: Path, most: int | None) -> list[object]:
    numbers = [each for each in _parts(needs, path) if isinstance(each, int)]
    least = max([len(numbers), *(each + 1 if each >= 0 else -each for each in numbers)])
    length = chosen.randint(min(least, most or least), max(least, min(3, most or 3)))
    parts = ([each for each in (number, number - length) if each in numbers] for number in range(length))
    return [_value(chosen, needs, (*path, part[0] if part else ITEM)) for part in parts]


def _parts(needs: Requirements, path: Path) -> list[Any]:
    """What the needs below a path name next."""
    return list(dict.fromkeys(each[len(path)] for each in needs if len(each) > len(path) and each[: len(path)] == path))
