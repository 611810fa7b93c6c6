"""One file per step kind. A kind is carried out through a recorder, so that finished work is never done again."""

from codex_multi_role.steps.ask import Answered, Ask, ask, payload_from
from codex_multi_role.steps.check import check
from codex_multi_role.steps.resources import Json, Recorder, RunResources, TestSettings

__all__ = [
    "Answered",
    "Ask",
    "Json",
    "Recorder",
    "RunResources",
    "TestSettings",
    "ask",
    "check",
    "payload_from",
]
