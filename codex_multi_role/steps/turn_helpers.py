"""What a role can call within its turn: a person's answers, and the controller's tools.

If nobody can or wants to answer a question, the role continues at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.checks.tools import Tool, ToolContext, find_tool
from codex_multi_role.codex.approvals import Params, ToolReply
from codex_multi_role.errors import StorageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.replies import schema_problems
from codex_multi_role.run_folder import Answer, AskPerson, Question, Questions, TurnFolder
from codex_multi_role.run_folder.events import ReviewAnswered, ReviewAsked, ToolCalled, Warning, now
from codex_multi_role.steps.resources import RunResources

BY_NOBODY = "nobody"
SKIP = "skip"
LONGEST_QUESTION_TOLD = 200
LONGEST_PROBLEM = 500


class TurnHelpers:
    """The `Helpers` of one turn of ``instance``; every tool call is stored in the turn's folder.

    ``kept`` collects what the tools store for the handoff; ``called`` gets the name of each tool. Questions are asked
    one after the other; an answer may take as long as a turn of the ``role``.
    """

    def __init__(
        self,
        run: RunResources,
        role: RoleSpec,
        instance: str,
        folder: TurnFolder,
        kept: Json,
        called: Callable[[str], None],
    ) -> None:
        self._run = run
        self._role = role
        self._instance = instance
        self._folder = folder
        self._kept = kept
        self._called = called
        self._questions = Questions(run.services.folder.path, run.services.folder.redact)
        self._count = 0
        self.person_seconds = 0.0

    def ask_user(self, params: Params) -> dict[str, str]:
        """The available answers, by question ID. Secrets are not asked for, because the run folder would store them."""
        asked = [each for each in params.get("questions", ()) if not each.get("isSecret")]
        answers = {str(each["id"]): self.ask(str(each["question"]), "\n".join(_options(each))) for each in asked}
        return {name: answer.comment for name, answer in answers.items() if answer and answer.approved}

    def ask(self, question: str, show: str) -> Answer | None:
        """A person's answer; None if nobody is present, is to be asked, or answered in time."""
        ask_person = None if self._run.settings.yes else self._run.services.ask_person
        if ask_person is None:
            shown = self._run.services.folder.redact(question)[:LONGEST_QUESTION_TOLD]
            self._run.services.events.publish(
                Warning(f"{self._instance} continues without an answer, because nobody is available: {shown}")
            )
            return None
        began = time.monotonic()
        try:
            answer = self._put(question, show, ask_person)
        finally:
            self.person_seconds += time.monotonic() - began
        return answer if answer.approved or answer.by != BY_NOBODY else None

    def _put(self, question: str, show: str, ask_person: AskPerson) -> Answer:
        self._count += 1
        asked = self._questions.ask(
            Question(
                key=f"{self._instance}.turn_{self._folder.number:03d}.{self._count}",
                question=question,
                show=show,
                asked_at=now(),
                time_limit_seconds=self._role.limits.turn_seconds,
                default=SKIP,
                words=True,
            )
        )
        self._run.services.events.publish(ReviewAsked(asked.key, question))
        with self._run.services.clock.person(within_turn=True):
            given = ask_person(asked, lambda: self._is_over(asked))
        answer = self._questions.settle(asked.key, given or Answer(False, "", BY_NOBODY, now())).answer
        assert answer is not None
        self._run.services.events.publish(ReviewAnswered(asked.key, answer.approved, answer.comment, answer.by))
        return answer

    def _is_over(self, question: Question) -> bool:
        known = self._questions.find(question.key)
        return (
            self._run.progress.stopping.is_set()
            or self._run.services.budget.exceeded.is_set()
            or question.out_of_time
            or (known is not None and known.answer is not None)
        )

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
            return _refused(f"the tool {name} is no longer available to this role")
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
        self._called(tool.name)
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
            ask_person=self.ask,
            stopping=self._run.progress.stopping,
            kept=self._kept,
        )


def _options(asked: Mapping[str, Any]) -> Iterator[str]:
    for option in asked.get("options") or ():
        yield f"- {option['label']}: {option['description']}"


def _refused(problem: str) -> ToolReply:
    return ToolReply(problem[:LONGEST_PROBLEM], success=False)
