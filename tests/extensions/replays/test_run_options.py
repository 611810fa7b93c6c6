"""What replays add to the options of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.cli.run import run
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.run_options import EVERY_RUN
from codex_multi_role.host.settings_files import SETTINGS_FILE


def reuse_of(*arguments: str) -> object:
    with run.make_context("run", [*arguments, "--replay-match", "nearest"]) as context:
        return context.params["reuse"]


def test_reuse_is_a_flag_a_variable_and_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert reuse_of() == ""
    Path(SETTINGS_FILE).write_text("reuse: true")
    assert reuse_of() == EVERY_RUN
    monkeypatch.setenv("CODEX_MULTI_ROLE_REUSE", "0")
    assert reuse_of() == ""
    assert reuse_of("--reuse") == EVERY_RUN


@pytest.mark.parametrize("reuse", [EVERY_RUN, "20260131_101500_0a1b2c3d"])
def test_run_remembers_them(reuse: str) -> None:
    options = RunOptions(workspace="/w", runs_dir="/r", reuse=reuse, record="/a.ndjson", replay_match="nearest")
    assert RunOptions.from_record(json.loads(json.dumps(options.as_record()))) == options
    assert options.changed(reuse="", record=None, replay_match="strict") == replace(options, added={})


def test_older_run_without_them_has_their_defaults() -> None:
    recorded = {"replay_match": "strict", "reuse": "", "record": None, "replay": None}
    assert RunOptions.from_record({**RunOptions().as_record(), **recorded}).added == {}


def test_wrong_value_is_refused() -> None:
    with pytest.raises(UsageError, match="replay_match must be strict or nearest, not 'most'"):
        RunOptions(replay_match="most")  # type: ignore[arg-type]
