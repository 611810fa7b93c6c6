"""What a role can call within its turn: a person's answers, and the controller's tools."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.codex.approvals import Params, ToolReply
from codex_multi_role.errors import StorageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.replies import schema_problems
from codex_multi_role.run_folder import TurnFolder
from codex_multi_role.run_folder.events import ToolCalled, now
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.role_questions import TurnQuestions
from codex_multi_role.tools import Tool, ToolContext, find_tool

LONGEST_PROBLEM = 500


class TurnHelpers:
    """The `Helpers` of one turn of ``instance``; every tool call is stored in the turn's folder.

    ``kept`` collects what the tools store for the handoff.
    """

    def __init__(self, run: RunResources, role: RoleSpec, instance: str, folder: TurnFolder, kept: Json) -> None:
        self._run = run
        self._role = role
        self._instance = instance
        self._folder = folder
        self._kept = kept
        self._questions = TurnQuestions(run, instance, folder.number, role.limits.turn_seconds)

    @property
    def person_seconds(self) -> float:
        return self._questions.seconds

    def ask_user(self, params: Params) -> Mapping[str, str]:
        return self._questions.put(params)

    def call_tool(self, name: str, arguments: object) -> ToolReply:
        """Carry out the call, record it, publish it. Raises `StorageError`."""
        began, at = time.monotonic(), now()
        reply = self._reply(name, arguments)
        seconds = round(time.monotonic() - began, 3)
        call = {"tool": name, "arguments": arguments, "success": reply.success, "text": reply.text}
        line = json.dumps({**call, "seconds": seconds, "at": at}, ensure_ascii=False)
        self._folder.add_tool_call(line)
        self._run.services.events.publish(ToolCalled(self._instance, self._folder.number, name, reply.success, seconds))
        return reply

    def _reply(self, name: str, arguments: object) -> ToolReply:
        if name not in self._role.tools:
            return _refused(f"the tool {name} is not offered to this role any more")
        if not isinstance(arguments, dict):
            return _refused("wrong arguments: they must be a JSON object")
        try:
            return self._call(find_tool(name), arguments)
        except StorageError:
            raise
        except Exception as error:  # whatever an installed tool raises, the turn continues
            return _refused(f"the tool {name} failed: {str(error) or type(error).__name__}")

    def _call(self, tool: Tool, arguments: Json) -> ToolReply:
        if problems := schema_problems(arguments, tool.input_schema):
            return _refused(f"wrong arguments: {'; '.join(problems)}")
        result = tool.call(self._context(), arguments)
        if result.keep:
            kept = {**self._kept, **result.keep}
            self._folder.write_kept(kept)
            self._kept.update(kept)
        return ToolReply(str(result.text), bool(result.success))

    def _context(self) -> ToolContext:
        return ToolContext(
            role=self._instance,
            workspace=self._run.workspace,
            folder=self._folder.path,
            ask_person=self._questions.ask,
            stopping=self._run.progress.stopping,
            kept=self._kept,
        )


def _refused(problem: str) -> ToolReply:
    return ToolReply(problem[:LONGEST_PROBLEM], success=False)
