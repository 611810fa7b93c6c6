"""Make the bundle of a recorded run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role.checks.interpreter import OWN, find_interpreter
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.bundle_file import CLAIMS, RECORDING, STATES, TEAM, write_bundle
from codex_multi_role.extensions.replays.claims import Claims, observe
from codex_multi_role.extensions.replays.comparing import DIFFERS
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.extensions.replays.replay_tests import working_folder
from codex_multi_role.extensions.replays.surroundings import environment_of, tests_before
from codex_multi_role.extensions.replays.verifying import verify_bundle
from codex_multi_role.extensions.results.run_history import RunHistory, history_of
from codex_multi_role.host.atomic import write_bytes
from codex_multi_role.lifecycle.kept_definitions import remembered_options
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import RELOADED
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import repositories_in

DIFFERS_HINT = (
    "Chance decides how it goes, or something outside the workspace does, "
    "such as a pyproject.toml in a folder above it."
)
RECORD_HINT = "Only a run with --record FILE has the model's exact answers. Run it again with that option."


@dataclass(frozen=True)
class Bundled:
    """What was written: ``size`` in bytes."""

    path: Path
    claims: Claims
    size: int


def make_bundle(folder: RunFolder, path: Path) -> Bundled:
    """Write the bundle of a run that has ended. Its last tests run once more, on the state it started from.

    Raises `UsageError` for a run that another machine could not run again, `StorageError`.
    """
    record = folder.record()
    recording = _recording_of(folder, record)
    history = history_of(folder)
    _require_repeatable(folder)
    claims = _claims(history, record, recording)
    files = {
        CLAIMS: claims.model_dump_json(indent=1).encode() + b"\n",
        RECORDING: recording.path.read_bytes(),
        STATES: _pack(history.git(), claims.observed.states),
        **{f"{TEAM}{name}": content for name, content in _team(folder).items()},
    }
    write_bundle(path, files)
    return Bundled(path, claims, path.stat().st_size)


def make_verified_bundle(folder: RunFolder, path: Path) -> Bundled:
    """Write the bundle of a run to ``path`` only if `verify_bundle` accepts it here: no honest one is refused later.

    Raises as `make_bundle`, and `UsageError` for a run that does not go the same way again.
    """
    with working_folder("bundle") as place:
        made = make_bundle(folder, place / "run.bundle")
        found = verify_bundle(made.path, _options_of_tests(folder), trust_team=True)
        differing = [line.text for line in found.lines if line.status == DIFFERS]
        if differing:
            raise UsageError(f"run {folder.run_id} does not go the same way again: {differing[0]}", DIFFERS_HINT)
        write_bytes(path, made.path.read_bytes())
    return replace(made, path=path)


def _options_of_tests(folder: RunFolder) -> dict[str, Any]:
    """The Python of the run's workspace, which no bundle has, unless it is this one; the run's Codex and sandbox."""
    options = remembered_options(folder, record := folder.record(), {})
    found = find_interpreter(Path(record["workspace"]), os.environ, options.tests.python)
    python = None if found.source == OWN else found.path
    return {"python": python, "codex_bin": options.answers.codex_bin, "test_sandbox": options.tests.test_sandbox}


def _recording_of(folder: RunFolder, record: Mapping[str, Any]) -> Recording:
    """The run's own recording. Raises `UsageError` if it is missing or incomplete."""
    given = record["options"].get("record")
    if not given:
        raise UsageError(f"run {folder.run_id} was not recorded", RECORD_HINT)
    path = Path(given)
    if not path.is_file():
        raise UsageError(f"the recording of run {folder.run_id} was not found: {path}", "Put it back there first.")
    recording = Recording.load(path)
    if recording.header["run"] != folder.run_id:
        raise UsageError(f"{path} is the recording of run {recording.header['run']}, not of {folder.run_id}")
    if recording.ended is None:
        raise UsageError(f"run {folder.run_id} has not ended", f"`{folder.command('resume')}` continues it.")
    return recording


def _require_repeatable(folder: RunFolder) -> None:
    if any(folder.catalog_path.glob(f"{RELOADED}*")):
        raise UsageError(
            f"the roles or the flow of run {folder.run_id} were changed while it ran", "Run it again as they are now."
        )


def _claims(history: RunHistory, record: Mapping[str, Any], recording: Recording) -> Claims:
    folder, options = history.folder, remembered_options(history.folder, record, {})
    observed = observe(history, recording.header["workspace"], _inside(recording.path, Path(record["workspace"])))
    if nested := repositories_in(history.git(), observed.first):
        raise UsageError(
            f"the workspace of run {folder.run_id} has nested git repositories: {', '.join(nested[:5])}",
            "Their files are not in the run's states, so no other machine has them.",
        )
    before = None
    if observed.tests:
        options = options.changed(workspace=Path(record["workspace"]), worktree=False, branch=None)
        with working_folder("bundle") as place:
            before = tests_before(history.git(), observed.first, observed.last, place, options)
    return Claims(
        version=1,
        run=folder.run_id,
        catalog_file=record["catalog_file"],
        pytest_cmd=options.tests.pytest_cmd,
        test_seconds=options.tests.test_seconds,
        made_with=environment_of(folder, history.git(), options.answers.codex_bin),
        observed=observed,
        tests_before=before,
    )


def _inside(recording: Path, workspace: Path) -> list[str]:
    """The path of a recording that is in the workspace. It grew with every answer, which is not part of the work."""
    path = Path(os.path.realpath(recording))
    return [path.relative_to(workspace).as_posix()] if path.is_relative_to(workspace) else []


def _pack(git: Git, trees: list[str]) -> bytes:
    """All objects of ``trees``, as the same bytes each time."""
    listed = git.run("rev-list", "--objects", "--no-object-names", "--stdin", stdin="\n".join(trees).encode())
    objects = b"\n".join(sorted(set(listed.stdout.split())))
    options = ("--stdout", "--quiet", "--threads=1", "--no-reuse-delta", "--no-reuse-object")
    return git.run("pack-objects", *options, stdin=objects + b"\n").stdout


def _team(folder: RunFolder) -> dict[str, bytes]:
    """The run's own copies of its YAML, by their paths below ``catalog/``."""
    files = (path for path in folder.catalog_path.rglob("*") if path.is_file())
    return {path.relative_to(folder.catalog_path).as_posix(): path.read_bytes() for path in files}
