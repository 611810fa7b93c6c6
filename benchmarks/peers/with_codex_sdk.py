"""The job with the official Codex SDK: a Codex process for each agent, with Codex's own settings but the model's."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from job import CYCLES, ITEMS, MODEL, ROLES, Answers, instructions, prompt, run_job
from openai_codex import Codex, CodexConfig

RETRIES = "{{request_max_retries=0, stream_max_retries=0, name='bench', wire_api='responses', base_url='{}'}}"


def open_codex(stack: ExitStack, name: str, base_url: str) -> Any:
    """A started process with a home of its own: several that start on one home at once fail."""
    home = Path.cwd() / name
    home.mkdir()
    overrides = (f"model_providers.bench={RETRIES.format(base_url)}", "model_provider='bench'", f"model='{MODEL}'")
    config = CodexConfig(config_overrides=overrides, cwd=str(Path.cwd()), env={**os.environ, "CODEX_HOME": str(home)})
    return stack.enter_context(Codex(config))


def thread(codex: Any, role: str) -> Any:
    return codex.thread_start(cwd=str(Path.cwd()), developer_instructions=instructions(role))


def turns(base_url: str) -> Answers:
    answers: list[str] = []
    with ExitStack() as stack:
        team = [thread(open_codex(stack, role, base_url), role) for role in ROLES]
        for _ in range(CYCLES):
            for member in team:
                answers.append(str(member.run(prompt(answers)).final_response))
    return answers


def fan(base_url: str) -> Answers:
    with ExitStack() as stack, ThreadPoolExecutor(ITEMS) as pool:

        def take_turn(number: int) -> str:
            codex = open_codex(stack, f"worker.{number}", base_url)
            return str(thread(codex, "worker").run(prompt(())).final_response)

        return list(pool.map(take_turn, range(ITEMS)))


if __name__ == "__main__":
    run_job(turns, fan)
