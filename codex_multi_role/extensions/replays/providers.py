"""``--record`` puts a recorder in front of a run's model providers, ``--replay`` a recording in their place."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.replays.closing import close_recording, compare_end, recording_file, recording_of
from codex_multi_role.extensions.replays.comparison import LiveDifferences
from codex_multi_role.extensions.replays.recorder import RecordingProxy
from codex_multi_role.extensions.replays.recording import Recording
from codex_multi_role.extensions.replays.replay_server import ReplayServer
from codex_multi_role.extensions.replays.run_options import ReplayOptions
from codex_multi_role.extensions.replays.run_outcome import (
    SUGGESTED,
    as_recorded,
    places_of,
    suggested_options,
    workspace_tree,
)
from codex_multi_role.extensions.replays.selected_provider import provider_of
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.model_providers import ModelProviders, ModelSource, Settings, provider_settings
from codex_multi_role.run_folder import EventLog, RunFolder, list_turns
from codex_multi_role.run_folder.events import Warning, now
from codex_multi_role.run_options import RunOptions
from codex_multi_role.version import __version__


def require_new_file(options: RunOptions) -> None:
    """Raise `UsageError` if the recording cannot be created."""
    recording: Path = options.added["record"]
    if recording.exists():
        raise UsageError(f"the recording {recording} already exists", "Name another file, or delete it first.")
    if not recording.parent.is_dir():
        message = f"the folder of the recording was not found: {recording.parent.absolute()}"
        raise UsageError(message, "Create it first, or name a file in another folder.")


def start_recorder(
    definitions: Definitions, folder: RunFolder, events: EventLog, stack: ExitStack, models: ModelProviders
) -> ModelProviders:
    file = recording_file(definitions, definitions.options.added["record"], folder)
    if any(list_turns(folder)):
        try:
            file.go_on(folder.run_id)
        except UsageError as error:
            events.publish(Warning(f"{error}; the run continues without being recorded"))
            return models
    else:
        file.begin(_header(definitions, folder))
    proxy = stack.enter_context(RecordingProxy(file))

    def report_problem() -> None:
        if file.problem:
            events.publish(Warning(file.problem))

    stack.callback(report_problem)

    def proxy_settings(settings: Settings, home: Path | None) -> Settings:
        provider = provider_of(settings, home)
        return provider.at(proxy.through(provider.name, provider.base_url, provider.account_url))

    return ModelProviders(models.provider, proxy_settings, models.model)


def _header(definitions: Definitions, folder: RunFolder) -> dict[str, Any]:
    options = definitions.options.as_keywords()
    return {
        "run": folder.run_id,
        "recorded_at": now(),
        "codex_multi_role": __version__,
        **{name: options[name] for name in SUGGESTED},
        "roles": [role.name for role in definitions.roles],
        "model": options["model"],
        "playbook": definitions.playbook.name if definitions.playbook else None,
        "workspace": workspace_tree(definitions, folder),
    }


def start_replay(
    definitions: Definitions, folder: RunFolder, events: EventLog, stack: ExitStack, _: ModelProviders
) -> ModelProviders:
    recording = recording_of(definitions)
    on_the_way = LiveDifferences(folder, events)
    if not any(list_turns(folder)):
        _report_beginning(definitions, recording, folder, events, on_the_way)
    match = definitions.options.added.get("replay_match", ReplayOptions.replay_match)
    places = places_of(definitions, folder)
    server = stack.enter_context(ReplayServer(recording, match, places, on_the_way.prompt_differs))

    def provider(role: str) -> Settings:
        # The name as well: Codex depends on it, for example when it compacts a conversation.
        name = recording.providers.get(role, "replay")
        return provider_settings("replay", name, server.base_url, recording.model(role))

    return ModelProviders(provider, model=recording.model)


def _report_beginning(
    definitions: Definitions, recording: Recording, folder: RunFolder, events: EventLog, on_the_way: LiveDifferences
) -> None:
    events.publish(Warning(f"no model is asked: the answers come from the recording {recording.name}"))
    if recording.ended is None:
        events.publish(Warning(f"the recording {recording.name} was cut short: its run did not end"))
    tree = workspace_tree(definitions, folder)
    on_the_way.begin(recording.name, tree)
    if tree != recording.header.get("workspace"):
        on_the_way.differs("the workspace is not in the state in which the recording started")


RECORD = ModelSource(
    require_new=require_new_file,
    start=start_recorder,
    close=close_recording,
    writes=lambda options: options.added["record"],
    is_inherited=False,
)
REPLAY = ModelSource(
    load=lambda options: Recording.load(options.added["replay"]),
    start=start_replay,
    close=compare_end,
    suggest=lambda path, workspace: suggested_options(Recording.load(path), workspace),
    person=lambda definitions, folder, person: as_recorded(
        recording_of(definitions), places_of(definitions, folder), person
    ),
)
