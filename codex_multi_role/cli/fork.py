"""``fork``: start a new run with the past of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from codex_multi_role.cli.asking import person_at
from codex_multi_role.cli.goal import choose_goal
from codex_multi_role.cli.options import FORKABLE, OF_THIS_PROCESS, RUNS_DIR, START, command, run_argument
from codex_multi_role.cli.reports import reported
from codex_multi_role.cli.resume import changes_of, say_changes
from codex_multi_role.cli.run import close
from codex_multi_role.cli.views import open_view
from codex_multi_role.presentation.progress import Progress
from codex_multi_role.run_folder import RunFolder


@command(RUNS_DIR, START, *FORKABLE, *OF_THIS_PROCESS, short_help="Start a new run with the past of another.")
@run_argument
@click.pass_context
@reported
def fork(ctx: click.Context, /, run: str, **values: Any) -> None:  # noqa: ANN401 - the settings above
    """Start a new run that has the past of RUN (an id, a unique prefix of one, or `latest`) before a step.

    The turns before it are not asked again, and what the roles remember ends there. The workspace is restored in a new
    folder as it was then, without .git, caches and what git ignored. RUN may still go on; it and its workspace are not
    touched.

    The new run has the options of RUN. Those given here, as flags or in the environment, change what comes after, and
    -i and -c add to what it has. Another flow begins with its own inputs, and is one that --roles or the package has.
    Up to the step, flow and roles must lead the way they did.

    \b
    Examples:
      codex-multi-role fork latest --from develop:2 --goal "The same in Rust"
      codex-multi-role fork 20260131_101500 --from plan --roles ../other/roles --workspace ../attempt
    """
    folder = RunFolder.find(values["runs_dir"], run)
    changes = changes_for(ctx, folder.record()["options"])
    say_changes(ctx, changes)
    progress = Progress()
    from codex_multi_role import api

    with open_view(progress, as_json=values["json"], quiet=values["quiet"], plain=values["plain"]) as view:
        report = api.fork(
            folder.run_id,
            runs_dir=folder.path.parent,
            start=values["from"],
            changes=changes,
            on_event=view,
            ask_person=person_at(view, as_json=values["json"], awaited=values["await_answers"]),
        )
    close(ctx, report, progress)


def changes_for(ctx: click.Context, remembered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `RunOptions` fields given now; ``remembered`` are the run's. Raises `UsageError`."""
    changes = changes_of(ctx, {**remembered, "inputs": {}}, FORKABLE)
    if "inputs" in changes and changes.get("flow", remembered["flow"]) == remembered["flow"]:
        changes["inputs"] = {**remembered["inputs"], **changes["inputs"]}
    if "goal" in changes or changes.pop("goal_file", None):
        changes["goal"] = choose_goal(ctx)
    return changes
