"""What may happen to a message on its way, how often, and whether a run has to bear it.

The deeds: ``split`` the line into several writes, ``delay`` it, ``double`` it, ``swap`` it with the next one, ``drop``
it. ``blank``, ``garbage``, ``unknown`` (a notification), ``request`` (one of an unknown method), ``stranger`` (an
answer to what nobody asked), ``foreign`` (another thread's notification) come before it. ``newer`` gives it what a
later version of Codex might add. ``close`` closes the pipe instead, ``deaf`` reads nothing for a while, ``die`` ends
Codex as ``kill -9`` does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

Direction = Literal["in", "out"]
"""As in a role's ``events.jsonl``: ``in`` comes from Codex, ``out`` goes to it."""


@dataclass(frozen=True)
class Profile:
    """How often each deed is done to a message, by direction; ``idle_seconds`` and ``turn_seconds`` of every role.

    ``bearable``: whatever happens, the run has to reach its goal.
    """

    bearable: bool
    idle_seconds: float
    turn_seconds: float
    rates: Mapping[Direction, Mapping[str, float]]


GENTLE_IN = {"split": 0.2, "delay": 0.1, "newer": 0.2, "unknown": 0.05, "request": 0.04, "blank": 0.05}
GENTLE_OUT = {"split": 0.2, "delay": 0.1}
ROUGH_IN = {**GENTLE_IN, "double": 0.05, "swap": 0.05, "garbage": 0.06, "stranger": 0.04, "foreign": 0.06}
# A request that came twice would be carried out and paid for twice, so only answers are doubled on this way.
ROUGH_OUT = {**GENTLE_OUT, "double": 0.3}
CRUEL_IN = {**ROUGH_IN, "drop": 0.015, "close": 0.004, "die": 0.004}
CRUEL_OUT = {**ROUGH_OUT, "drop": 0.01, "deaf": 0.02}

PROFILES: Mapping[str, Profile] = {
    "calm": Profile(True, 20, 60, {"in": {}, "out": {}}),
    "gentle": Profile(True, 20, 60, {"in": GENTLE_IN, "out": GENTLE_OUT}),
    "rough": Profile(False, 20, 60, {"in": ROUGH_IN, "out": ROUGH_OUT}),
    "cruel": Profile(False, 2, 10, {"in": CRUEL_IN, "out": CRUEL_OUT}),
}
DISTURBING = tuple(name for name in PROFILES if name != "calm")


class Case(NamedTuple):
    """A disturbed run: the name of its profile, and the seed of everything that happens in it."""

    profile: str
    seed: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """``PROFILE:SEED``. Raises ValueError."""
        profile, _, seed = text.partition(":")
        if profile not in PROFILES:
            raise ValueError(f"{profile!r} is none of {', '.join(PROFILES)}")
        return cls(profile, int(seed))

    def __str__(self) -> str:
        return f"{self.profile}:{self.seed}"


@dataclass(frozen=True)
class Fate:
    """What happens to one message; ``chance`` decides how."""

    deeds: frozenset[str]
    chance: random.Random


class Fates:
    """The fates of all messages of one process, ``process`` being its name: the same seed has the same in store."""

    def __init__(self, case: Case, process: str) -> None:
        self._case = case
        self._process = process

    def of(self, direction: Direction) -> Iterator[Fate]:
        """One for each message of that direction, without end. What befalls a message depends on its number alone."""
        rates = PROFILES[self._case.profile].rates[direction]
        number = 0
        while True:
            number += 1
            chance = random.Random(f"{self._case} {self._process} {direction} {number}")
            yield Fate(frozenset(deed for deed, rate in rates.items() if chance.random() < rate), chance)
