"""What is wrong before any turn costs none: Codex's own words are on the screen, and the run goes on once mended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from codex_multi_role.cli.summary import EXIT_MEANINGS, outcome_in_words
from codex_multi_role.codex.locator import find_codex
from tests.faults.screen import Screen
from tests.teams import TeamFolder, say

OPENAI = ("-c", 'model_provider="openai"')
MEND = "a setting (-c, the role's codex_config), config.toml or CODEX_HOME"


@dataclass(frozen=True)
class Start:
    """``home``: makes the user's Codex home, given a path that is not there. ``mended``: what `resume` is given."""

    arguments: tuple[str, ...]
    words: str
    advice: str = MEND
    home: Callable[[Path], object] = Path.mkdir
    mended: tuple[str, ...] = ()
    outcome: str = "start_failed"
    exit_code: int = 3


def broken_config(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("= = [\n")


STARTS: Mapping[str, Start] = {
    "bad -c": Start(
        ("-c", "model_reasoning_effort=[]"),
        "Error: invalid type: sequence",
        mended=("-c", "model_reasoning_effort=low"),
    ),
    "unknown provider": Start(("-c", "model_provider=nowhere"), "Error: Model provider `nowhere` not found"),
    "CODEX_HOME missing": Start(OPENAI, "that path does not exist", home=Path.exists),
    "CODEX_HOME a file": Start(OPENAI, "that path is not a directory", home=Path.touch),
    "CODEX_HOME read-only": Start(
        OPENAI, "failed to initialize sqlite state runtime", home=lambda path: path.symlink_to("/proc/sys")
    ),
    "broken config.toml": Start(OPENAI, "config.toml:1:3", home=broken_config),
    "no app-server": Start(
        ("--codex-bin", "/bin/false", "--playbook", "playbook.yaml"),
        "ended with exit code 1",
        advice="",
        mended=("--codex-bin", str(find_codex(None, {}))),
    ),
    "no login": Start(
        OPENAI, "the model provider needs a login", advice="codex login", outcome="not_logged_in", exit_code=2
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_that_fails_says_why_and_costs_nothing(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    row = STARTS[name]
    TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status="DONE")]})
    row.home(tmp_path / "codex_home")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex_home"))
    seen = screen.give("run", "--goal", "reach it", "--roles", "roles", "--workspace", "workspace", *row.arguments)
    record = seen.record
    assert (seen.exit_code, record["exit_code"]) == (row.exit_code, row.exit_code), seen.text
    assert (record["status"], record["outcome"], seen.turns) == ("failed", row.outcome, [])
    assert row.words in record["reason"]
    (end,) = seen.events("run_ended")
    assert all(end[each] == record[each] for each in ("status", "outcome", "reason"))
    (line,) = [line for line in seen.text.splitlines() if line.startswith(f"{outcome_in_words(row.outcome)}: ")]
    told = line.removeprefix(f"{outcome_in_words(row.outcome)}: ").rstrip(".…")  # a long one is cut
    assert record["reason"].startswith(told)
    assert not row.advice or row.advice in seen.line("hint")
    assert seen.line("exit") == f"{row.exit_code}: {EXIT_MEANINGS[row.exit_code]}"
    again = screen.give(*seen.next_command, "--playbook", "playbook.yaml", *row.mended)
    assert (again.exit_code, again.record["outcome"], len(again.turns)) == (0, "done", 1), again.text
