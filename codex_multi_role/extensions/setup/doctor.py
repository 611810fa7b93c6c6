"""``doctor`` and ``codex``: check that everything a run needs is here, and call the Codex binary."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import Any

import click

from codex_multi_role.cli.options import JSON, SETTINGS, command
from codex_multi_role.cli.output import put_json, put_line
from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.setup.diagnosis import diagnose, mcp_servers
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_options import RunOptions

LOOKED_AT = ("codex_bin", "config", "workspace", "python", "pytest_cmd", "test_sandbox", "roles", "runs_dir")


@command(*(SETTINGS[name] for name in LOOKED_AT), JSON)
@click.option("--tests", is_flag=True, help="Also run the project's tests, in a copy, as a run does at its start.")
@click.pass_context
def doctor(ctx: click.Context, /, json: bool, tests: bool, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Check what a run needs on this machine, and print how to fix each problem. No model is asked.

    The roles' MCP servers are listed but not started.

    The exit code is 0 if everything is fine, and 2 if something must be fixed.

    \b
    Examples:
      codex-multi-role doctor
      codex-multi-role doctor -c model_provider=ollama --json
      codex-multi-role doctor --tests
    """
    findings = []
    options = RunOptions(**values)
    for finding in chain(diagnose(options, tests=tests), mcp_servers(options)):
        findings.append(finding)
        if json:
            continue
        put_line(f"{'ok' if finding.ok else 'problem':<8} {finding.name:<10} {one_line(finding.detail)}")
        if finding.advice:
            put_line(f"{'':<8} {'':<10} {finding.advice}")
    if json:
        put_json([asdict(finding) for finding in findings])
    ctx.exit(0 if all(finding.ok for finding in findings) else ExitCode.WRONG_USAGE)
