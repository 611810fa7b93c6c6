"""What we send is what the installed binary's own schema allows, and it is the binary we say we are tested with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from codex_multi_role.codex.approvals import ApprovalPolicy, ToolSpec, answer
from codex_multi_role.codex.failures import classify
from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.notifications import READERS
from codex_multi_role.codex.running_turn import TurnDeadlines
from codex_multi_role.codex.turn_outcome import TurnRequest
from codex_multi_role.extensions.setup.protocol import changed_messages, protocol_as_tested
from tests.support.codex import ANSWER, PATCH, PATIENT, ROLE, Harness, request, take, wire

pytestmark = pytest.mark.real

NOT_LISTED = "rawResponse/completed"
"""The binary prints the shape of this notification, but not in its list of notifications."""
RESPONSES = {
    "item/commandExecution/requestApproval": "CommandExecutionRequestApprovalResponse",
    "item/fileChange/requestApproval": "FileChangeRequestApprovalResponse",
    "item/permissions/requestApproval": "PermissionsRequestApprovalResponse",
    "item/tool/requestUserInput": "ToolRequestUserInputResponse",
    "item/tool/call": "DynamicToolCallResponse",
    "mcpServer/elicitation/request": "McpServerElicitationRequestResponse",
}

TOOLS = (ToolSpec("ask_user", "Ask.", {"type": "object", "properties": {"question": {"type": "string"}}}),)


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protocol")
    command = [str(find_codex(None, {})), "app-server", "generate-json-schema", "--experimental", "--out", str(folder)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    return folder


def validator(schemas: Path, name: str) -> Draft7Validator:
    return Draft7Validator(json.loads((schemas / f"{name}.json").read_text()))


def test_every_outgoing_message_fits_the_schema(harness: Harness, schemas: Path) -> None:
    fleet = harness.fleet(
        [PATCH, {"fault": {"stall_seconds": 60}}, ANSWER],
        sandbox="workspace-write",
        tools=TOOLS,
        skill_folders=("/none",),
    )
    schema: dict[str, Any] = {"type": "object", "properties": {"summary": {"type": "string"}}}
    client = fleet.client(ROLE)
    full = TurnRequest("go", schema, "low", "playbook", request().metadata)
    assert client.run_turn(full, PATIENT, lambda _: None).status == "completed"
    assert take(client, 2, TurnDeadlines(idle=0.7, turn=30)).status == "stalled"
    thread = client.thread.id
    fleet.stop()
    again = take(harness.client([ANSWER], thread_id=thread))
    assert again.status == "completed"
    assert harness.client([ANSWER], thread_id=thread, inherited={thread: again.turn_id}, effort="low").thread.resumed
    sent = wire(harness, "out")
    spoken = protocol_as_tested()
    assert {message["method"] for message in sent if "method" in message} == {
        *spoken["ClientRequest"],
        *spoken["ClientNotification"],
    }
    requests, notifications = validator(schemas, "ClientRequest"), validator(schemas, "ClientNotification")
    for message in sent:
        if "result" not in message:
            (requests if "id" in message else notifications).validate(message)


def test_protocol_of_the_pinned_binary_is_the_tested_one() -> None:
    """A change of it is looked at, then written down with `python -m tests.extensions.setup.write_protocol`."""
    spoken = protocol_as_tested()
    assert changed_messages(find_codex(None, {})) == []
    assert {*spoken["ServerNotification"], NOT_LISTED} == READERS.keys()
    assert set(spoken["ServerRequest"]) == set(RESPONSES)
    assert set(RESPONSES.values()) <= set(spoken)


@pytest.mark.parametrize("method", RESPONSES)
@pytest.mark.parametrize("allowed", [False, True])
def test_every_approval_reply_fits_the_schema(schemas: Path, method: str, allowed: bool) -> None:
    params = {"permissions": {"network": {"enabled": True}}}
    given = answer(method, params, ApprovalPolicy(commands=allowed, file_changes=allowed))
    validator(schemas, RESPONSES[method]).validate(given.reply["result"])


def error_classes(schemas: Path) -> set[str]:
    """Of a TurnError, as the installed binary names them."""
    known = json.loads((schemas / "codex_app_server_protocol.schemas.json").read_text())
    options = known["definitions"]["v2"]["CodexErrorInfo"]["anyOf"]
    return {name for option in options for name in (*option.get("enum", ()), *option.get("required", ()))}


def test_every_error_class_of_installed_server_is_classified(schemas: Path) -> None:
    """Each class has its own row in the table of errors."""
    never_asked_for = {"threadRollbackFailed", "activeTurnNotSteerable"}
    unknown = classify({"message": "why", "codexErrorInfo": "aClassOfANewerCodex"}).reason
    for name in error_classes(schemas) - never_asked_for:
        shapes: list[object] = [name, {name: {}}]
        told = {classify({"message": "why", "codexErrorInfo": shape}).reason for shape in shapes}
        assert told - {unknown}, name


def test_every_request_of_installed_server_gets_a_reply(schemas: Path) -> None:
    methods = [
        option["properties"]["method"]["enum"][0]
        for option in json.loads((schemas / "ServerRequest.json").read_text())["oneOf"]
    ]
    assert set(RESPONSES) <= set(methods)
    for method in methods:
        assert set(answer(method, {}, ApprovalPolicy()).reply) <= {"result", "error"}
