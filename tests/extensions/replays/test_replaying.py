"""Which recorded turn answers one that is asked for, and what is reported where none does."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.extensions.replays.closing import NotAsRecorded, compare_end
from codex_multi_role.extensions.replays.recording import RecordedTurn
from codex_multi_role.extensions.replays.replay_server import find_turn
from codex_multi_role.lifecycle.definitions import Definitions, load_definitions
from codex_multi_role.lifecycle.model_providers import start_providers
from codex_multi_role.playbook.request import AnswerKey, Asked
from codex_multi_role.run_folder import EventLog, RunFolder
from codex_multi_role.run_options import RunReport
from tests.support.models import body, user
from tests.support.recordings import ENDED, WHOLE, exchange, written
from tests.support.teams import TeamFolder, read


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", None)


@pytest.fixture
def definitions(tmp_path: Path) -> Definitions:
    """Of the replay of a recording in which role one was asked to do it."""
    recording = written(tmp_path / "it.ndjson", exchange(), ENDED).path
    return load_definitions(TeamFolder(tmp_path, {"one": {}}, {}).options(playbook=None, replay=recording))


@pytest.fixture
def replay(definitions: Definitions, folder: RunFolder) -> Iterator[http.client.HTTPConnection]:
    with closing(EventLog(folder.events_path, folder.redact)) as events, ExitStack() as stack:
        models = start_providers(definitions, folder, events, stack)
        address = re.search(r"http://([\d.:]+)/v1", " ".join(models.provider("one")))
        assert address is not None
        with closing(http.client.HTTPConnection(address[1], timeout=20)) as client:
            yield client


def answer(replay: http.client.HTTPConnection, unit: str) -> tuple[int, Any]:
    asked = body(user("do it well"), ask=AnswerKey("one", 1, 0, 1), multi_role_unit=unit)
    replay.request("POST", "/v1/responses", asked)
    response = replay.getresponse()
    return response.status, json.loads(response.read())["error"]["message"]


def test_key_of_a_unit_may_be_longer_than_the_name_of_a_file(
    replay: http.client.HTTPConnection, folder: RunFolder
) -> None:
    for unit in ("ä" * 300, "ä" * 301):
        status, said = answer(replay, unit)
        assert (status, "this turn is not recorded (-do it +do it well)" in said) == (422, True)
    assert len(list((folder.path / "replay").iterdir())) == 2


def test_difference_that_cannot_be_saved_is_reported_to_codex(
    replay: http.client.HTTPConnection, folder: RunFolder
) -> None:
    (folder.path / "replay").write_text("in the way")
    status, said = answer(replay, "")
    assert (status, "cannot write" in said) == (422, True)


@pytest.mark.parametrize(("exit_code", "compared"), [(1, True), (3, True), (4, False), (130, False)])
def test_replay_that_has_not_ended_is_not_compared(
    definitions: Definitions,
    folder: RunFolder,
    replay: http.client.HTTPConnection,
    exit_code: int,
    compared: bool,
) -> None:
    report = RunReport(folder.run_id, folder.path, "x", "x", "", exit_code, "", {})
    with pytest.raises(NotAsRecorded) if exit_code == 1 else nullcontext():
        assert bool([*compare_end(definitions, folder, report)]) == compared
    assert ("differences" in read(folder.path / "replay.json")) == compared


def turn(prompt: str, *, end: str = "completed", **ask: Any) -> RecordedTurn:
    who = {"role": "one", "visit": 1, "repair": 0, "attempt": 1, **ask}
    return RecordedTurn(who.pop("unit", ""), AnswerKey(**who), prompt, {("turn", 0): {**WHOLE, "end": end}})


def asked(**ask: Any) -> Asked:
    who = {"role": "one", "visit": 1, "repair": 0, "attempt": 1, **ask}
    return Asked("now", "turn", AnswerKey(**{**who}), "", "m", "")


def test_second_try_of_killed_turn_is_played() -> None:
    turns = [turn("do it", end="broken"), turn("do it")]
    assert find_turn(turns, asked(), "do it", "strict").turn is turns[1]
    assert find_turn(turns[::-1], asked(), "do it", "strict").turn is turns[1]


def test_of_two_turns_that_share_a_place_the_prompt_decides() -> None:
    turns = [turn("item a"), turn("item b")]
    assert find_turn(turns, asked(), "item a", "strict").turn is turns[0]


def test_strict_finds_none_and_says_in_what_it_differs() -> None:
    found = find_turn([turn("do\nit")], asked(), "do\nit well", "strict")
    assert found.turn is None
    assert "-it\n+it well" in found.diff
    assert (
        "role one, visit 2: this turn is not recorded"
        in find_turn([turn("do it")], asked(visit=2), "do it", "strict").difference
    )
    assert (
        "this role is not in the recording"
        in find_turn([turn("do it")], asked(role="two"), "do it", "strict").difference
    )


def test_nearest_is_of_the_role_and_the_most_similar() -> None:
    turns = [turn("a\nb\nc\nd"), turn("a\nb\nx\ny", visit=2), turn("a\nb\nc\nz", role="two")]
    found = find_turn(turns, asked(visit=3), "a\nb\nx\nz", "nearest")
    assert found.turn is turns[1]
    assert found.difference


def test_nearest_prefers_the_same_ask_among_equals() -> None:
    turns = [turn("same", visit=1), turn("same", visit=2), turn("same", visit=2, attempt=2)]
    assert find_turn(turns, asked(visit=2), "changed", "nearest").turn is turns[1]
