"""``replay-test``: the regression test of a team."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from codex_multi_role.cli.options import CODEX_BIN, CONFIG, JSON, QUIET, ROLES, SETTINGS, command
from codex_multi_role.cli.output import put_json, put_line
from codex_multi_role.cli.setting import FOLDER, output_file, setting_of
from codex_multi_role.extensions.ci.ended_run import ERROR, FAILED, PASSED, Case
from codex_multi_role.extensions.ci.junit import junit_suite
from codex_multi_role.extensions.replays.replay_tests import find_recordings, replay_tests
from codex_multi_role.extensions.replays.run_options import ReplayOptions
from codex_multi_role.host.atomic import still_there, write_bytes
from codex_multi_role.option import options_in
from codex_multi_role.presentation.wording import duration, one_line, plural
from codex_multi_role.run_options import RunTests

if TYPE_CHECKING:
    from codex_multi_role.extensions.replays.replay_tests import Replayed

SHOWN_DIFFERENCES, SHOWN_LINES = 20, 40
TESTS_OF_THE_RUN = [SETTINGS[field.name] for field in fields(RunTests)]
MATCH = setting_of(options_in(ReplayOptions)["replay_match"])
OF_THE_RUN = [ROLES, MATCH, *TESTS_OF_THE_RUN, CONFIG, CODEX_BIN]


@command(*OF_THE_RUN, JSON, QUIET)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--keep", metavar="DIR", type=FOLDER, help="Keep the runs and their workspaces in DIR.")
@output_file("--junit", help="Also write the results to FILE as JUnit XML.")
@click.pass_context
def replay_test(ctx: click.Context, /, folder: Path, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Replay every recording in DIR (*.ndjson) with the current roles: the regression test of a team.

    No model and no login are needed. shop.ndjson is replayed in a copy of the folder shop/ next to it, otherwise of
    workspace/, otherwise in an empty folder. The replay must produce the recorded prompts, handoffs, outcome and files.

    \b
    Exit codes: 0 all replays match, 1 at least one differs, 2 at least one cannot be replayed.
    \b
    Examples:
      codex-multi-role "Add a --version flag" --record recordings/version.ndjson
      codex-multi-role replay-test recordings
      codex-multi-role replay-test recordings --roles ../roles --replay-match nearest
    """
    json, quiet, keep, junit = (values.pop(name) for name in ("json", "quiet", "keep", "junit"))
    given = {
        key: value
        for key, value in values.items()
        if key == "roles" or ctx.get_parameter_source(key) is not ParameterSource.DEFAULT
    }

    def show(result: Replayed) -> None:
        if not (json or (quiet and not result.exit_code)):
            put_result(result)

    results = replay_tests(find_recordings(folder), given, show, keep)
    code = max(result.exit_code for result in results)
    if json:
        put_json({"recordings": [asdict(result) for result in results], "exit_code": code})
    elif not quiet:
        put_line(_verdict(results))
    if junit is not None:
        _write_junit(junit, results)
    ctx.exit(code)


def put_result(result: Replayed) -> None:
    """Print a recording's result and how its replay differs."""
    for line in _lines(result):
        put_line(line)


def _lines(result: Replayed) -> Iterator[str]:
    word = "FAIL" if result.exit_code == 1 else "ERROR" if result.exit_code else "ok"
    yield f"{word:<6}{one_line(result.name)}  {plural(result.turns, 'turn')} in {duration(result.seconds)}"
    yield from (f"      {one_line(each, 500)}" for each in result.differences[:SHOWN_DIFFERENCES])
    if len(result.differences) > SHOWN_DIFFERENCES:
        yield f"      and {len(result.differences) - SHOWN_DIFFERENCES} more"
    yield from (f"      ignored: {one_line(each, 500)}" for each in result.notes)
    for diff in result.diffs.values():
        lines = diff.splitlines()
        yield from (f"        {line[:200]}" for line in lines[:SHOWN_LINES])
        if len(lines) > SHOWN_LINES:
            yield f"        and {len(lines) - SHOWN_LINES} more lines"


def _verdict(results: list[Replayed]) -> str:
    good = sum(not result.exit_code for result in results)
    return f"{plural(len(results), 'recording')}: {good} as recorded, {len(results) - good} not"


def _write_junit(path: Path, results: list[Replayed]) -> None:
    """Write one test case per recording. Raises `StorageError`."""
    write_bytes(still_there(path), junit_suite("replay-test", map(_case, results)))


def _case(result: Replayed) -> Case:
    outcome = {0: PASSED, 1: FAILED}.get(result.exit_code, ERROR)
    lines = [*result.differences, *(line for diff in result.diffs.values() for line in diff.splitlines())]
    message = one_line(result.differences[0] if result.differences else result.status)
    return Case("replay-test", one_line(result.name), outcome, result.seconds, message, "\n".join(lines))
