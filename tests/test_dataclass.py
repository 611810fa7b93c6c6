"""The product's `dataclass` behaves as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.dataclass import dataclass

Make = Callable[..., Any]


def point(make: Make) -> Any:
    @make(frozen=True)
    class Point:
        x: int
        y: list[int] = dataclasses.field(default_factory=list)
        note: str = dataclasses.field(default="", compare=False)
        hidden: int = dataclasses.field(default=0, repr=False)

    return Point


def mutable(make: Make) -> Any:
    @make
    class Mutable:
        x: int

    return Mutable


def by_identity(make: Make) -> Any:
    @make(eq=False)
    class ByIdentity:
        x: int

    return ByIdentity


def with_own_methods(make: Make) -> Any:
    @make(frozen=True)
    class OwnMethods:
        """Its own docstring."""

        x: int

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self)

        def __hash__(self) -> int:
            return 1

        def __repr__(self) -> str:
            return "own"

    return OwnMethods


def with_own_equality(make: Make) -> Any:
    @make(frozen=True)
    class OwnEquality:  # noqa: PLW1641 - this is what is tested
        x: int

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self)

    return OwnEquality


def empty(make: Make) -> Any:
    @make(frozen=True)
    class Empty:
        pass

    return Empty


def child(make: Make) -> Any:
    parent: Any = point(make)

    @make(frozen=True)
    class Child(parent):  # type: ignore[misc]
        z: int = dataclasses.field(default=0, kw_only=True)

    return Child


CLASSES = (mutable, by_identity, with_own_methods, with_own_equality, point, child)


@dataclass(frozen=True)
class Kept:
    """One that `pickle` finds by its name."""

    x: int


def standard_and_ours(kind: Callable[[Make], Any]) -> tuple[Any, Any]:
    return kind(dataclasses.dataclass), kind(dataclass)


@given(st.sampled_from(CLASSES), st.integers(0, 1), st.integers(0, 1))
def test_objects_compare_and_show_themselves_alike(kind: Callable[[Make], Any], first: int, second: int) -> None:
    def seen(cls: Any) -> tuple[object, ...]:
        one, other = cls(first), cls(second)
        return one == other, one != other, one == first, repr(one) if kind is not by_identity else "", one == one

    standard, ours = standard_and_ours(kind)
    assert seen(ours) == seen(standard)
    assert (ours.__hash__ is None) == (standard.__hash__ is None)
    assert ours.__match_args__ == standard.__match_args__


NAMES = st.dictionaries(st.sampled_from(["x", "y", "note", "hidden", "z", "unknown"]), st.integers())


@given(st.sampled_from(CLASSES), st.lists(st.integers(), max_size=6), NAMES)
def test_arguments_are_taken_or_refused_alike(kind: Callable[[Make], Any], values: list[int], named: Any) -> None:
    def made(cls: Any) -> object:
        try:
            return vars(cls(*values, **named))
        except TypeError:
            return None

    standard, ours = standard_and_ours(kind)
    assert made(ours) == made(standard)


@pytest.mark.parametrize("kind", CLASSES)
def test_signatures_are_shown_alike(kind: Callable[[Make], Any]) -> None:
    standard, ours = map(inspect.signature, standard_and_ours(kind))
    assert str(ours).replace("<class 'list'>", "<factory>") == str(standard).removesuffix(" -> None")


def test_a_refusal_names_the_class_and_the_argument() -> None:
    with pytest.raises(TypeError, match=r"Kept\(\) .*'x'"):
        Kept()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Kept\(\) .*'y'"):
        Kept(1, y=2)  # type: ignore[call-arg]


def test_post_init_sees_all_fields_and_may_set_others() -> None:
    @dataclass(frozen=True)
    class Doubled:
        x: int = 1
        twice: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", self.x * 2)

    assert Doubled(4).twice == 8
    with pytest.raises(TypeError):
        Doubled(twice=1)  # type: ignore[call-arg]


def test_plain_child_class_runs_its_own_post_init() -> None:
    @dataclass
    class Parent:
        x: int

        def __post_init__(self) -> None:
            raise AssertionError

    class Child(Parent):
        def __post_init__(self) -> None:
            self.x += 1

    assert Child(1).x == 2


@given(st.integers(), st.integers(), st.text(), st.integers())
def test_fields_take_part_as_they_say(x: int, hidden: int, note: str, other: int) -> None:
    standard, ours = standard_and_ours(point)
    assert repr(ours(x, note=note, hidden=hidden)) == repr(standard(x, note=note, hidden=hidden))
    for make in (standard, ours):
        assert make(x, note=note, hidden=hidden) == make(x, note="", hidden=hidden)
        assert (make(x) == make(other)) == (x == other)


def test_an_object_does_not_equal_one_of_a_child_class() -> None:
    for make in (dataclasses.dataclass, dataclass):
        assert child(make)(1) != point(make)(1)


@pytest.mark.parametrize("make", [dataclasses.dataclass, dataclass])
def test_frozen_objects_stay_as_they_are(make: Make) -> None:
    for frozen in (point(make)(1), child(make)(1), empty(make)()):
        for name in ("x", "new"):
            with pytest.raises(dataclasses.FrozenInstanceError, match=name):
                setattr(frozen, name, 2)
            with pytest.raises(dataclasses.FrozenInstanceError, match=name):
                delattr(frozen, name)


def test_equal_frozen_objects_have_one_hash() -> None:
    assert {Kept(1), Kept(1), Kept(2)} == {Kept(2), Kept(1)}
    assert {empty(dataclass): 1}
    with pytest.raises(TypeError, match="unhashable"):
        hash(mutable(dataclass)(1))


def test_copies_and_replacements_are_equal() -> None:
    kept = Kept(1)
    assert copy.deepcopy(kept) == copy.copy(kept) == pickle.loads(pickle.dumps(kept)) == kept
    assert dataclasses.replace(kept, x=2) == Kept(2)
    assert dataclasses.asdict(kept) == {"x": 1}


def test_a_class_keeps_its_docstring() -> None:
    assert point(dataclass).__doc__ is None
    assert with_own_methods(dataclass).__doc__ == "Its own docstring."
    assert repr(with_own_methods(dataclass)(1)) == "own"
