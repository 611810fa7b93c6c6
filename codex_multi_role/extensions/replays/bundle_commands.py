"""``bundle`` and ``verify``: a run in one file, and the same again on another machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.options import (
    CODEX_BIN,
    JSON,
    PYTHON,
    RUNS_DIR,
    TEST_SANDBOX,
    command,
    run_argument,
)
from codex_multi_role.cli.output import put_json, put_line, say
from codex_multi_role.cli.run_reference import find_run
from codex_multi_role.cli.setting import InputFile, output_file
from codex_multi_role.cli.settings import LookCommand
from codex_multi_role.extensions.replays.bundling import make_verified_bundle
from codex_multi_role.extensions.replays.verifying import verify_bundle
from codex_multi_role.presentation.wording import plural


@command(RUNS_DIR, JSON, cls=LookCommand)
@run_argument
@output_file("-o", "--output", required=True, help="The file, a zip archive.")
def bundle(run: str, output: Path, runs_dir: Path, json: bool) -> None:
    """Write RUN (default: the latest run) to a file that `verify` checks on another machine, without a model.

    The run must have ended, and must have been recorded with --record. The file has the recording, the team, every
    state of the workspace, and what the run claims: its turns, test results and figures. It contains the files of the
    workspace, except those that git ignores: read it before you publish it. It is verified once, in a temporary folder;
    a run that does not go the same way again there is refused.

    \b
    Examples:
      codex-multi-role bundle -o version.bundle
    """
    made = make_verified_bundle(find_run(run, runs_dir), output)
    observed = made.claims.observed
    if json:
        put_json({"file": str(output), "bytes": made.size, "claims": made.claims.model_dump()})
        return
    parts = [(len(observed.turns), "turn"), (len(observed.states), "state"), (len(observed.tests), "test result")]
    put_line(f"{output}: {', '.join(plural(count, name) for count, name in parts)}, {made.size:,} bytes")
    if made.claims.tests_before:
        put_line(f"the last tests on the first state: {made.claims.tests_before.words}")


@command(PYTHON, TEST_SANDBOX, CODEX_BIN, JSON)
@click.argument("file", type=InputFile())
@click.option("--trust-team", is_flag=True, help="Allow a team that can start programs outside the sandbox.")
def verify(file: Path, trust_team: bool, json: bool, **options: Any) -> None:  # noqa: ANN401 - the settings above
    """Run the bundle FILE again in a temporary folder, without a model, and compare everything that it claims.

    This runs code of the bundle's author: the commands of its roles and its tests, in Codex's sandbox, without network.
    They are printed on standard error before any of them runs.
    A team with MCP servers, Codex settings or other rights of its own is refused unless --trust-team is given. Programs
    of this machine are used; what could not be checked is listed.

    \b
    Exit codes: 0 nothing differs, 1 at least one claim differs, 2 not a bundle, or it cannot be run here.
    \b
    Examples:
      codex-multi-role verify version.bundle
      codex-multi-role verify version.bundle --python ../shop/.venv --json
    """
    result = verify_bundle(file, options, trust_team=trust_team, on_command=lambda each: say(f"runs {each}"))
    if json:
        lines = [asdict(line) for line in result.lines]
        put_json({"run": result.run, "verdict": result.verdict, "lines": lines, "exit_code": result.exit_code})
    else:
        for line in result.lines:
            put_line(f"{line.status}: {line.text}")
        put_line(result.verdict)
    raise click.exceptions.Exit(result.exit_code)
