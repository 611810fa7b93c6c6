"""What replaces the model providers of a run: a playbook, a recording, or a recorder in front of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_multi_role.codex.codex_settings import as_settings
from codex_multi_role.codex.providers import provider_of
from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.lifecycle.model_prices import PLAYBOOK_MODEL, recorded_model
from codex_multi_role.run_folder import EventLog, RunFolder, list_turns
from codex_multi_role.run_folder.events import Warning, now
from codex_multi_role.version import __version__

if TYPE_CHECKING:  # lazy elsewhere: most runs record nothing
    from codex_multi_role.lifecycle.recordings.comparison import LiveDifferences
    from codex_multi_role.playbook.recording import Recording, RecordingFile

Settings = tuple[str, ...]


@dataclass(frozen=True)
class ModelProviders:
    """``provider``: by role, the settings that override all others. ``model``: by role, the model if decided here.

    ``proxy_settings``: those that lead to the recorder, from all settings of a role and the user's home they depend on.
    """

    provider: Callable[[str], Settings] = lambda _: ()
    proxy_settings: Callable[[Settings, Path | None], Settings] = lambda _, __: ()
    model: Callable[[str], str | None] = lambda _: None


def start_providers(definitions: Definitions, folder: RunFolder, events: EventLog, stack: ExitStack) -> ModelProviders:
    """Start what the run requests, until ``stack`` exits. Raises `UsageError`, `CodexUnavailable`, `StorageError`."""
    if definitions.recording is not None:
        return _replayed(definitions, definitions.recording, folder, events, stack)
    played = ModelProviders()
    if definitions.playbook is not None:
        from codex_multi_role.playbook import PlaybookServer

        server = stack.enter_context(PlaybookServer(definitions.playbook))
        settings = provider_settings("playbook", "playbook", server.base_url, PLAYBOOK_MODEL)
        played = ModelProviders(lambda _: settings, model=lambda _: PLAYBOOK_MODEL)
    if definitions.options.answers.record is None:
        return played
    return _recorded(played, definitions, definitions.options.answers.record, folder, events, stack)


def provider_settings(key: str, name: str, base_url: str, model: str) -> Settings:
    """The settings of a provider on the loopback interface, without its own retries."""
    retries = {"request_max_retries": 0, "stream_max_retries": 0}
    table = {"name": name, "base_url": base_url, "wire_api": "responses", **retries}
    return as_settings({"model_provider": key, "model": model, f"model_providers.{key}": table})


def _recorded(
    played: ModelProviders,
    definitions: Definitions,
    path: Path,
    folder: RunFolder,
    events: EventLog,
    stack: ExitStack,
) -> ModelProviders:
    from codex_multi_role.playbook.recorder import RecordingProxy

    file = recording_file(definitions, path, folder)
    if any(list_turns(folder)):
        try:
            file.go_on(folder.run_id)
        except UsageError as error:
            events.publish(Warning(f"{error}; the run continues without being recorded"))
            return played
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

    return ModelProviders(played.provider, proxy_settings, played.model)


def recording_file(definitions: Definitions, path: Path, folder: RunFolder) -> RecordingFile:
    """The recording at ``path``, written without secrets and with names for paths."""
    from codex_multi_role.lifecycle.recordings.run_outcome import places_of
    from codex_multi_role.playbook.recording import RecordingFile

    places = places_of(definitions, folder)

    def clean(line: Mapping[str, Any]) -> dict[str, Any]:
        cleaned: dict[str, Any] = places.named(folder.redact.within(line))
        return cleaned

    return RecordingFile(path, clean)


def _header(definitions: Definitions, folder: RunFolder) -> dict[str, Any]:
    from codex_multi_role.lifecycle.recordings.run_outcome import SUGGESTED, workspace_tree

    options = definitions.options.as_keywords()
    return {
        "run": folder.run_id,
        "recorded_at": now(),
        "codex_multi_role": __version__,
        **{name: options[name] for name in SUGGESTED},
        "roles": [role.name for role in definitions.roles],
        "model": options["model"],
        "playbook": definitions.playbook.name if definitions.playbook else None,
        "workspace_name": definitions.workspace.name,
        "workspace": workspace_tree(definitions, folder),
    }


def _replayed(
    definitions: Definitions, recording: Recording, folder: RunFolder, events: EventLog, stack: ExitStack
) -> ModelProviders:
    from codex_multi_role.lifecycle.recordings.comparison import LiveDifferences, keep_played
    from codex_multi_role.lifecycle.recordings.run_outcome import places_of
    from codex_multi_role.playbook.replay import ReplayServer

    on_the_way = LiveDifferences(folder, events)
    if not any(list_turns(folder)):
        _report_beginning(definitions, recording, folder, events, on_the_way)
    match, places = definitions.options.answers.replay_match, places_of(definitions, folder)
    server = stack.enter_context(ReplayServer(recording, match, places, on_the_way.prompt_differs))
    stack.callback(keep_played, folder.path, server.played)

    def model(role: str) -> str:
        return recorded_model(recording, role)

    def provider(role: str) -> Settings:
        # The name as well: Codex depends on it, for example when it compacts a conversation.
        return provider_settings("replay", recording.providers.get(role, "replay"), server.base_url, model(role))

    return ModelProviders(provider, model=model)


def _report_beginning(
    definitions: Definitions, recording: Recording, folder: RunFolder, events: EventLog, on_the_way: LiveDifferences
) -> None:
    from codex_multi_role.lifecycle.recordings.run_outcome import workspace_tree

    events.publish(Warning(f"no model is asked: the answers come from the recording {recording.name}"))
    if recording.ended is None:
        events.publish(Warning(f"the recording {recording.name} was cut short: its run did not end"))
    tree = workspace_tree(definitions, folder)
    on_the_way.begin(recording.name, tree)
    if tree != recording.header.get("workspace"):
        on_the_way.differs("the workspace is not in the state in which the recording started")
