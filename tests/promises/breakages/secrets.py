"""5. No secret of the parent's environment reaches a tool command unless named; what is left to be read holds none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

from codex_multi_role.checks.command import _environment
from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.process_of_tests import environment_of_tests
from codex_multi_role.codex import codex_settings
from codex_multi_role.codex.child import Child
from codex_multi_role.codex.running_turn import ApprovalAnswered
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.extensions.replays.closing import recording_file
from codex_multi_role.extensions.replays.recorder import RecordingProxy
from codex_multi_role.extensions.replays.recording import RecordingFile
from codex_multi_role.extensions.replays.run_outcome import places_of
from codex_multi_role.host import redaction
from codex_multi_role.host.atomic import write_text
from codex_multi_role.host.redaction import LOGIN, SECRET_NAME, Redactor
from codex_multi_role.lifecycle.definitions import _refuse_secrets
from codex_multi_role.run_folder import folder
from codex_multi_role.run_folder.event_log import EventLog
from codex_multi_role.run_folder.events import RunEvent
from codex_multi_role.run_folder.folder import RunFolder
from codex_multi_role.run_folder.questions import Questions
from codex_multi_role.run_folder.turn_folder import TurnFolder
from codex_multi_role.steps.turn_events import SUMMARY_LENGTH, TurnEvents
from tests.promises.breakage import Broken
from tests.promises.change import ReplacedValue, constant, replaced, returns, undecorated

LEFT_TO_BE_READ = "test_secrets.py::test_what_is_left_to_be_read_holds_no_secret_whoever_said_it"
NEITHER = "test_secrets.py::test_neither_a_commands_nor_a_tests_environment_has_a_secret"
WHOLE_ENVIRONMENT = ('shell_environment_policy.inherit="all"', "shell_environment_policy.ignore_default_excludes=true")


def _secret_name_without(part: str) -> ReplacedValue:
    return constant(redaction, "SECRET_NAME", re.compile(SECRET_NAME.pattern.replace(part, "NOTHING"), re.IGNORECASE))


def _with_prompt(begin: Callable[..., None], self: TurnFolder, prompt: str, details: Mapping[str, Any]) -> None:
    begin(self, prompt, details)
    write_text(self.path / "prompt.txt", prompt)


def _with_answer(write: Callable[..., None], self: TurnFolder, assistant_text: str, *others: str) -> None:
    write(self, assistant_text, *others)
    write_text(self.path / "assistant_text.txt", assistant_text)


def _written_as_it_is(write: Callable[..., Path], self: CheckContext, name: str, text: str) -> Path:
    path = write(self, name, text)
    path.write_text(text, encoding="utf-8")
    return path


def _published_as_it_is(publish: Callable[..., None], self: EventLog, *events: RunEvent) -> None:
    with patch.object(self._redact, "within", dict):
        publish(self, *events)


def _drained_as_it_is(drain: Callable[..., None], self: Child, stream: IO[bytes]) -> None:
    self._redact = str
    drain(self, stream)


def _with_detail(observe: Callable[..., None], self: TurnEvents, event: object) -> None:
    observe(self, event)
    if isinstance(event, ApprovalAnswered):
        self.approvals[-1]["detail"] = event.detail


def _for_everybody(create: Callable[..., RunFolder], *given: Any) -> RunFolder:
    made = create(*given)
    made.path.chmod(0o755)
    return made


def _recorded_as_it_is(write: Callable[..., None], self: RecordingProxy, *given: Any) -> None:
    *others, masked = given
    with patch.object(masked, "within", dict):
        write(self, *others, masked)


SECRETS: Broken = {
    "a role's command gets a core of the environment only": (
        constant(codex_settings, "LEAN", (*codex_settings.LEAN, *WHOLE_ENVIRONMENT)),
        "codex/test_client.py::test_tool_commands_see_no_secret_of_our_environment",
        NEITHER,
    ),
    "tests get no secret": (
        replaced(
            environment_of_tests,
            lambda of_tests, context, *rest: {**context.environment, **of_tests(context, *rest)},
        ),
        "checks/test_tests.py::test_no_secret_reaches_the_tests",
        NEITHER,
    ),
    "a check's command gets what was named and no secret": (
        replaced(
            _environment,
            lambda environment, context, options: {**context.environment, **environment(context, options)},
        ),
        "checks/test_command.py::test_environment_has_what_was_named_and_no_secret",
    ),
    "a name says what a secret is": (
        _secret_name_without("KEY"),
        "host/test_redaction.py::test_what_the_environment_calls_a_secret_is_masked_and_hidden",
    ),
    "a shape says it, too": (
        returns(redaction._has_shape, False),
        "host/test_redaction.py::test_names_that_only_resemble_one_are_kept",
    ),
    "secrets are masked by value": (
        replaced(Redactor.__init__, lambda init, self, environment: init(self, {})),
        LEFT_TO_BE_READ,
    ),
    "secrets are masked by shape": (
        constant(redaction, "SECRET_SHAPE", re.compile("(?!)")),
        LEFT_TO_BE_READ,
        "host/test_redaction.py::test_private_key_is_masked_whole_and_when_cut_short",
    ),
    "messages are masked": (
        replaced(WireLog._text, lambda _, self, line: line.decode("utf-8", "replace")),
        LEFT_TO_BE_READ,
    ),
    "prompts are masked": (replaced(TurnFolder.begin, _with_prompt), LEFT_TO_BE_READ),
    "answers are masked": (replaced(TurnFolder.write_answer, _with_answer), LEFT_TO_BE_READ),
    "what tests print is masked": (replaced(CheckContext.write_artifact, _written_as_it_is), LEFT_TO_BE_READ),
    "events are masked": (replaced(EventLog.publish, _published_as_it_is), LEFT_TO_BE_READ),
    "questions are masked": (
        replaced(Questions.__init__, lambda init, self, run_folder, *_: init(self, run_folder)),
        LEFT_TO_BE_READ,
    ),
    "a goal is masked where it is told": (
        constant(folder, "FOR_READING", ()),
        "test_secrets.py::test_goal_that_holds_a_secret_is_masked_wherever_it_is_shown",
    ),
    "what stderr says is masked": (
        replaced(Child._drain, _drained_as_it_is),
        "codex/test_transport.py::test_what_a_child_says_on_stderr_is_masked",
    ),
    "what an approval is about is masked": (
        replaced(TurnEvents.observe, _with_detail),
        "steps/test_containment.py::test_escalation_is_logged_whatever_was_decided",
    ),
    "a setting with a secret is refused": (
        returns(_refuse_secrets, None),
        "test_secrets.py::test_setting_with_secret_is_refused_before_writing",
    ),
    "only its user looks into a run": (
        replaced(undecorated(RunFolder.create), _for_everybody),
        "test_secrets.py::test_only_its_user_can_look_into_a_run",
    ),
    "what is told is masked before it is cut": (
        replaced(TurnEvents._short, lambda short, self, text: str(text)[:SUMMARY_LENGTH]),
        "test_secrets.py::test_secret_is_masked_before_text_is_cut",
    ),
    "a recording has no secret of the environment": (
        replaced(
            recording_file,
            lambda _, definitions, path, folder: RecordingFile(path, places_of(definitions, folder).named),
        ),
        "extensions/replays/test_record_and_replay.py::test_no_secret_and_no_path_of_this_machine_is_in_the_file",
    ),
    "a recording has no login that an answer repeats": (
        replaced(RecordingProxy.write, _recorded_as_it_is),
        "extensions/replays/test_recorder.py::test_token_that_the_answer_repeats_is_masked",
    ),
    "a password in an address is masked": (
        constant(redaction, "LOGIN", re.compile(f"(?!){LOGIN.pattern}")),
        "host/test_redaction.py::test_password_in_an_address_is_masked_whoever_knows_it",
    ),
    "a telemetry receiver's headers are secrets": (
        _secret_name_without("HEADERS"),
        "host/test_redaction.py::test_each_header_that_is_sent_with_telemetry_is_a_secret",
    ),
}
