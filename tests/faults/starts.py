"""Starts of a run that fail before any turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.codex.locator import find_codex

OPENAI = ("-c", 'model_provider="openai"')
FIX_SETTING = "the setting that it names: -c, the role's codex_config, config.toml or CODEX_HOME"


@dataclass(frozen=True)
class Start:
    """``home``: makes the user's Codex home, given a path that is not there. ``fixed``: what `resume` is given."""

    arguments: tuple[str, ...]
    words: str
    advice: str = FIX_SETTING
    home: Callable[[Path], object] = Path.mkdir
    fixed: tuple[str, ...] = ()
    outcome: str = "start_failed"
    exit_code: int = 3


def broken_config(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("= = [\n")


STARTS: Mapping[str, Start] = {
    "bad -c": Start(
        ("-c", "model_reasoning_effort=[]"),
        "Error: invalid type: sequence",
        fixed=("-c", "model_reasoning_effort=low"),
    ),
    "unknown provider": Start(("-c", "model_provider=nowhere"), "Error: Model provider `nowhere` not found"),
    "CODEX_HOME missing": Start(OPENAI, "that path does not exist", home=Path.exists),
    "broken config.toml": Start(OPENAI, "config.toml:1:3", home=broken_config),
    "no app-server": Start(
        ("--codex-bin", "/bin/false", "--playbook", "playbook.yaml"),
        "ended with exit code 1",
        advice="",
        fixed=("--codex-bin", str(find_codex(None, {}))),
    ),
}

ALWAYS_STARTED = ("bad -c", "CODEX_HOME missing", "no app-server")
"""The others, which Codex reports in the same way, are only tried in the long run."""
