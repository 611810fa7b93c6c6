"""Who does the job in `compare.py`, and with which command: ours, the raw driver, and each peer in its environment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import fanout
import floor
from comparison_environments import Environment, prepare, prepare_ours
from raw import provider

HERE = Path(__file__).parent
RAW, OURS, SDK = "raw driver", "codex-multi-role", "Codex SDK"
PEERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    SDK: ("with_codex_sdk.py", ("openai-codex==0.163.0",)),
    "langgraph": ("with_langgraph.py", ("langgraph==1.2.22", "langchain-openai==1.7.3")),
    "autogen": ("with_autogen.py", ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5")),
    "ag2": ("with_ag2.py", ("ag2[openai]==1.2.1",)),
    "pydantic-ai": ("with_pydantic_ai.py", ("pydantic-ai-slim[openai]==2.68.0",)),
    "openai-agents": ("with_openai_agents.py", ("openai-agents==0.24.0",)),
    "crewai": ("with_crewai.py", ("crewai==1.15.30",)),
}
"""The script and the pinned requirements of each: the smallest set that each documents for one OpenAI-like model."""

QUIET = {
    "AUTOGEN_DISABLE_RUNTIME_TRACING": "true",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
    **fanout.NOWHERE,
}
"""The peers' own variables against telemetry, and a proxy on a closed port for everything that is not loopback."""


@dataclass(frozen=True)
class Driver:
    """``command(job, base_url)``; ``folder`` is where it runs; ``exit_code`` by job, 0 unless it is named."""

    name: str
    environment: Environment | None
    command: Callable[[str, str], list[str]]
    exit_codes: Mapping[str, int]
    folders: Mapping[str, Path]


def raw_driver() -> Driver:
    def command(job: str, base_url: str) -> list[str]:
        if job == "turns":
            return floor.raw_command("raw", base_url)
        return [sys.executable, fanout.__file__, "--raw", fanout.LEAN, base_url]

    return Driver(RAW, None, command, {}, {})


def ours(environments: Path, project: Path) -> Driver:
    """``project``: an empty folder for the fan-out's roles and flow."""
    environment = prepare_ours(environments)
    fanout.write_project(project)

    def command(job: str, base_url: str) -> list[str]:
        arguments = floor.ours(base_url)[1:] if job == "turns" else fanout_arguments(base_url)
        return [str(environment.python), *arguments]

    return Driver(OURS, environment, command, {"turns": 1}, {"fan": project})


def fanout_arguments(base_url: str) -> list[str]:
    flags = [part for setting in provider(base_url) for part in ("-c", setting)]
    return ["-m", "codex_multi_role", "--goal", "compare", "--flow", "fan", "--no-run-tests", "--quiet", *flags]


def peer(name: str, environments: Path) -> Driver:
    script, requirements = PEERS[name]
    environment = prepare(environments, name, requirements)
    path = str(HERE / "peers" / script)
    return Driver(name, environment, lambda job, url: [str(environment.python), path, job, url], {}, {})
