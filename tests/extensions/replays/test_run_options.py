"""What replays add to the options of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays import ReplayOptions
from codex_multi_role.run_options import options_by_name


def test_run_remembers_them() -> None:
    options = RunOptions(
        workspace="/w", runs_dir="/r", added=[ReplayOptions(record=Path("/a.ndjson"), replay_match="nearest")]
    )
    assert RunOptions.from_record(json.loads(json.dumps(options.as_record()))) == options
    assert options_by_name({"added": [ReplayOptions(replay_match="nearest")]}) == {"replay_match": "nearest"}
    assert options.changed(added=[ReplayOptions(record=Path("/b"))]).added == {**options.added, "record": Path("/b")}


@pytest.mark.parametrize("reuse", ["", "*", "20260131_101500_0a1b2c3d"])
def test_older_run_has_the_defaults(reuse: str) -> None:
    """Whether it took turns over by an option that has ended, or recorded every option."""
    recorded = {"replay_match": "strict", "reuse": reuse, "record": None, "replay": None}
    assert RunOptions.from_record({**RunOptions().as_record(), **recorded}).added == {}


def test_wrong_value_is_refused() -> None:
    with pytest.raises(UsageError, match="replay_match must be strict or nearest, not 'most'"):
        RunOptions(added=[ReplayOptions(replay_match="most")])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="added must be a list of AddedOptions of extensions, not 'strict'"):
        RunOptions(added="strict")  # type: ignore[arg-type]
