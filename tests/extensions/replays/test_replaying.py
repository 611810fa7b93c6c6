"""What a replay reports where it cannot continue as recorded: to Codex, to people and in its folder."""

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
from codex_multi_role.lifecycle.definitions import Definitions, load_definitions
from codex_multi_role.lifecycle.model_providers import start_providers
from codex_multi_role.playbook.request import AnswerKey
from codex_multi_role.run_folder import EventLog, RunFolder
from codex_multi_role.run_options import RunReport
from tests.support.models import body, user
from tests.support.recordings import ENDED, exchange, written
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
