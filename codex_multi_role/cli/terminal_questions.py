"""Questions on the terminal that an answer from elsewhere, a time limit or Ctrl-C can end."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from string import ascii_lowercase

import click

from codex_multi_role.cli.keys import TERMINAL, is_in_foreground
from codex_multi_role.cli.output import page_patch, say
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.deciding import situation_lines, situation_of
from codex_multi_role.presentation.plain import question_lines
from codex_multi_role.presentation.recorded import patch_of
from codex_multi_role.run_folder import Answer, AskPerson, Question, RunFolder
from codex_multi_role.run_folder.typed_answers import OPTION, from_edited, kind_of_field, problem_of, prompts, to_edit

Paused = Callable[[], AbstractContextManager[None]]
LOOK_SECONDS = 0.2
LONGEST_LINE = 4096
DIFF = "d"
LETTERS = [letter for letter in ascii_lowercase if letter != DIFF]
DIFF_SHOWN = f"`{DIFF}` alone shows these changes as a diff."
IN_EDITOR = {
    "lines": "Enter opens your editor, with an item per line; or type the list as JSON:",
    "json": "Enter opens your editor; or type the value as JSON:",
}
APPROVE, REJECT = frozenset({"y", "yes", "approve"}), frozenset({"n", "no", "reject"})
HOW = "Approve? [y/n] A comment may follow, as in: n too slow. Ctrl-D leaves the question open."
WORDS = "Your answer (one line; Enter for no answer):"
TYPED = "One line each; `reject REASON` rejects, and Ctrl-D leaves the question open."
WHY = "Why not? The roles may read your reason:"
OVER = "This question has been answered elsewhere or timed out."


def person_at(paused: Paused, course: Course, *, as_json: bool, awaited: bool) -> AskPerson | None:
    """Return what answers reviews on the terminal; None without a terminal.

    ``paused``: for the duration of a block, the ``course`` is not drawn there. Without a terminal and with ``awaited``,
    it waits for an answer from elsewhere.
    """
    if as_json or not is_at_terminal():
        return wait_for_others if awaited else None
    return TerminalAsker(paused, sys.stdin.fileno(), lambda: course.run_folder)


def is_at_terminal() -> bool:
    """Whether a person can be asked on the terminal of this process."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def wait_for_others(question: Question, is_over: Callable[[], bool]) -> Answer | None:
    """Wait until the question is over; the run itself finds an answer from elsewhere."""
    while not is_over():  # waits: for an answer from elsewhere, ended by the question's end
        time.sleep(LOOK_SECONDS)
    return None


def lettered(options: list[str]) -> dict[str, str]:
    """A letter for each option; none if an option is a letter itself, or there are too many."""
    is_clear = len(options) <= len(LETTERS) and all(len(option) > 1 for option in options)
    return dict(zip(LETTERS, options, strict=False)) if is_clear else {}


def _edited(text: str) -> str | None:
    """What a person leaves of the text in the editor; None without one: nobody has seen the default."""
    try:
        return click.edit(text, require_save=False) or ""
    except click.ClickException as error:
        say(f"{error.message}. Set EDITOR, or type the value as JSON.")
        return None


class TerminalAsker:
    """Asks one question at a time, even if several threads have one.

    Reads lines from the file descriptor, not from ``sys.stdin``: only the wait for a line may block. ``folder``: of the
    run, by which a person sees what the question is about.
    """

    def __init__(self, paused: Paused, descriptor: int, folder: Callable[[], RunFolder]) -> None:
        self._paused = paused
        self._descriptor = descriptor
        self._folder = folder
        self._patch: Callable[[], str] | None = None

    def __call__(self, question: Question, is_over: Callable[[], bool]) -> Answer | None:
        # waits: for the question before, or for the pager, ended by the end of either
        while not TERMINAL.acquire(timeout=LOOK_SECONDS):
            if is_over():
                return None
        try:
            with self._paused(), ExitStack() as after:
                self._discard_typeahead()
                after.callback(self._discard_typeahead)
                return self._ask(question, is_over) if is_in_foreground(self._descriptor) else None
        finally:
            TERMINAL.release()

    def _ask(self, question: Question, is_over: Callable[[], bool]) -> Answer | None:
        for line in ("", *question_lines(question), *self._situation(question)):
            say(line)
        if question.words:
            verdict = self._words(is_over)
        else:
            is_typed = question.options or question.fields
            verdict = self._values(question, is_over) if is_typed else self._verdict(is_over)
        if verdict is None and is_over():
            say(OVER)
        return verdict

    def _situation(self, question: Question) -> Iterator[str]:
        """What the question is about, in words; from now on `DIFF` shows what changed."""
        folder = self._folder()
        self._patch = None
        try:
            situation = situation_of(folder, question.key)
        except CodexMultiRoleError as error:  # the question can be answered without it
            yield f"  what it is about cannot be read: {error}"
            return
        yield from map(folder.redact, situation_lines(situation))
        if (changes := situation.changes) is not None and changes.files:
            self._patch = lambda: patch_of(folder, changes)
            yield f"  {DIFF_SHOWN}"

    def _values(self, question: Question, is_over: Callable[[], bool]) -> Answer | None:
        """The option and each field, asked for again until it is right; one that is left empty has its default."""
        say(TYPED)
        given: dict[str, str] = {}
        for name, prompt in prompts(question):
            value = self._value(question, name, prompt, is_over)
            if not isinstance(value, str):
                return value
            given |= {name: value} if value else {}
        return Answer(True, values={**given})

    def _value(self, question: Question, name: str, prompt: str, is_over: Callable[[], bool]) -> str | Answer | None:
        """What is given for an option or a field, empty for the default; or a rejection, or None as `_line` has it."""
        letters, schema = lettered(question.options) if name == OPTION else {}, question.fields.get(name, {})
        how, left = IN_EDITOR.get(kind_of_field(schema)), to_edit(schema)
        default = from_edited(left, schema)
        told = [*(f"  {letter}) {option}" for letter, option in letters.items()), f"{prompt}:", *filter(None, [how])]
        say("\n".join(told))
        while (line := self._line(is_over)) is not None:
            word, _, reason = line.strip().partition(" ")
            if word.lower() == "reject":
                return self._rejection(reason.strip(), is_over)
            value = letters.get(line.strip().lower(), line.strip())
            if how and not value and (edited := _edited(left)) is not None:
                left, value = edited, from_edited(edited, schema)
            if value or not how:
                value = "" if how and value == default else value
                if not (problem := problem_of(question, name, value)):
                    return value
                say(problem)
            say("\n".join(told))
        return None

    def _verdict(self, is_over: Callable[[], bool]) -> Answer | None:
        """Return the typed verdict; None at the end of the input or when the question is over."""
        say(HOW)
        while (line := self._line(is_over)) is not None:
            word, _, comment = line.strip().partition(" ")
            if word.lower() in APPROVE:
                return Answer(True, comment.strip())
            if word.lower() in REJECT:
                return self._rejection(comment.strip(), is_over)
            say(HOW)
        return None

    def _words(self, is_over: Callable[[], bool]) -> Answer | None:
        say(WORDS)
        line = self._line(is_over)
        return None if line is None else Answer(bool(line.strip()), line.strip())

    def _rejection(self, comment: str, is_over: Callable[[], bool]) -> Answer | None:
        while not comment:
            say(WHY)
            line = self._line(is_over)
            if line is None:
                return None
            comment = line.strip()
        return Answer(False, comment)

    def _line(self, is_over: Callable[[], bool]) -> str | None:
        """The next line that is not `DIFF`; None at the end of the input or when the question is over."""
        while (line := self._typed(is_over)) is not None:
            if self._patch is None or line.strip().lower() != DIFF:
                return line
            try:
                page_patch(self._patch(), is_over)
            except CodexMultiRoleError as error:  # the question can be answered without it
                say(f"The changes cannot be read: {error}")
        return None

    def _typed(self, is_over: Callable[[], bool]) -> str | None:
        """Wait without a limit for the next line; None at the end of the input or when the question is over."""
        while not is_over():  # waits: for a person, ended by the question's end
            if not is_in_foreground(self._descriptor):
                time.sleep(LOOK_SECONDS)
            elif select.select([self._descriptor], [], [], LOOK_SECONDS)[0]:
                with suppress(OSError):  # the terminal is gone
                    # waits: for nothing: `select` said that there is a line
                    return os.read(self._descriptor, LONGEST_LINE).decode("utf-8", "replace") or None
                return None
        return None

    def _discard_typeahead(self) -> None:
        """Keys pressed before the question do not answer it, and a rest of a line does not reach the shell."""
        with suppress(termios.error):
            if is_in_foreground(self._descriptor):
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
