"""What may happen to a message on its way to or from Codex, how often, and whether a run has to survive it.

The deeds: ``split`` the line into several writes, ``delay`` it, ``double`` it, ``swap`` it with the next one, make it
``late``, so that all that come close behind overtake it, ``drop`` it. ``blank``, ``garbage``, ``unknown`` (a
notification), ``request`` (one of an unknown method), ``stranger`` (an answer to what nobody asked), ``foreign``
(another thread's notification) come before it. ``newer`` gives it what a later version of Codex might add. ``close``
closes the pipe instead, ``deaf`` reads nothing for a while, ``die`` ends Codex as ``kill -9`` does.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Direction = Literal["in", "out"]
"""As in a role's ``events.jsonl``: ``in`` comes from Codex, ``out`` goes to it."""


@dataclass(frozen=True)
class Profile:
    """How often each deed is done to a message, by direction; ``idle_seconds`` and ``turn_seconds`` of every role.

    ``bearable``: whatever happens, the run must reach its goal. ``spared``: the first messages of a process, to which
    nothing happens: a process that does not start ends the run, and hides what might have gone wrong later.
    """

    bearable: bool
    idle_seconds: float
    turn_seconds: float
    rates: Mapping[Direction, Mapping[str, float]]
    spared: int = 0


GENTLE_IN = {"split": 0.2, "delay": 0.1, "newer": 0.2, "unknown": 0.05, "request": 0.04, "blank": 0.05}
GENTLE_OUT = {"split": 0.2, "delay": 0.1}
ROUGH_IN = {**GENTLE_IN, "double": 0.05, "swap": 0.05, "late": 0.02, "garbage": 0.06, "stranger": 0.04, "foreign": 0.06}
# A request that came twice would be carried out and paid for twice, so only answers are doubled on this way.
ROUGH_OUT = {**GENTLE_OUT, "double": 0.3}
CRUEL_IN = {**ROUGH_IN, "drop": 0.015, "close": 0.004, "die": 0.004}
CRUEL_OUT = {**ROUGH_OUT, "drop": 0.01, "deaf": 0.02}
HARSH_IN = {**ROUGH_IN, "drop": 0.03, "close": 0.008, "die": 0.008}
HARSH_OUT = {**ROUGH_OUT, "drop": 0.02, "deaf": 0.03}

PROFILES: Mapping[str, Profile] = {
    "calm": Profile(True, 20, 60, {"in": {}, "out": {}}),
    "gentle": Profile(True, 20, 60, {"in": GENTLE_IN, "out": GENTLE_OUT}),
    "rough": Profile(False, 20, 60, {"in": ROUGH_IN, "out": ROUGH_OUT}),
    "harsh": Profile(False, 2, 10, {"in": HARSH_IN, "out": HARSH_OUT}, spared=6),
    "cruel": Profile(False, 2, 10, {"in": CRUEL_IN, "out": CRUEL_OUT}),
}
DISTURBING = tuple(name for name in PROFILES if name != "calm")


@dataclass(frozen=True)
class Fate:
    """What happens to one message; ``chance`` decides how."""

    deeds: frozenset[str]
    chance: random.Random


Fates = Callable[[Direction, int, str], Fate]
"""The fate of the n-th message of a direction in one process; its name: its method, or whose answer it is."""


class Case(NamedTuple):
    """A disturbed run: the name of its profile, and the seed of everything that happens in it."""

    profile: str
    seed: int

    def fates(self, process: str) -> Fates:
        """What happens to a message depends on the seed, its process and its number, and on nothing else."""
        profile = PROFILES[self.profile]

        def fate(direction: Direction, number: int, _name: str) -> Fate:
            chance = random.Random(f"{self.profile}:{self.seed} {process} {direction} {number}")
            rates = profile.rates[direction] if number > profile.spared else {}
            return Fate(frozenset(deed for deed, rate in rates.items() if chance.random() < rate), chance)

        return fate


class Once(NamedTuple):
    """One deed, done to the n-th message of that name, in the first process of every role."""

    direction: Direction
    name: str
    deed: str
    nth: int = 1

    def fates(self, process: str) -> Fates:
        seen = itertools.count(1)

        def fate(direction: Direction, number: int, name: str) -> Fate:
            is_meant = process.endswith(".1") and (direction, name) == self[:2] and next(seen) == self.nth
            return Fate(frozenset({self.deed} if is_meant else ()), random.Random(number))

        return fate


class Several(NamedTuple):
    """Several deeds, each done once; two to the same message are both done."""

    each: tuple[Once, ...]

    def fates(self, process: str) -> Fates:
        all_of_them = [once.fates(process) for once in self.each]

        def fate(direction: Direction, number: int, name: str) -> Fate:
            deeds = [one(direction, number, name).deeds for one in all_of_them]
            return Fate(frozenset().union(*deeds), random.Random(number))

        return fate
