"""Questions on the terminal that an answer from elsewhere, a time limit or Ctrl-C can end."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from codex_multi_role.cli.output import say
from codex_multi_role.cli.views import View
from codex_multi_role.presentation.plain import question_lines
from codex_multi_role.run_folder import Answer, AskPerson, Question
from codex_multi_role.run_folder.typed_answers import problem_of, prompts

LOOK_SECONDS = 0.2
LONGEST_LINE = 4096
APPROVE, REJECT = frozenset({"y", "yes", "approve"}), frozenset({"n", "no", "reject"})
HOW = "Approve? [y/n] A comment may follow, as in: n too slow. Ctrl-D leaves the question open."
WORDS = "Your answer (one line; Enter for no answer):"
TYPED = "One line each; `reject REASON` rejects, and Ctrl-D leaves the question open."
WHY = "Why not? The roles may read your reason:"
OVER = "This question has been answered elsewhere or timed out."


def person_at(view: View, *, as_json: bool, awaited: bool) -> AskPerson | None:
    """Return what answers reviews on the terminal where ``view`` draws; None without a terminal.

    Without a terminal and with ``awaited``, it waits for an answer from elsewhere.
    """
    if as_json or not is_at_terminal():
        return wait_for_others if awaited else None
    return TerminalAsker(view, sys.stdin.fileno())


def is_at_terminal() -> bool:
    """Whether a person can be asked on the terminal of this process."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def wait_for_others(question: Question, is_over: Callable[[], bool]) -> Answer | None:
    """Wait until the question is over; the run itself finds an answer from elsewhere."""
    while not is_over():  # waits: for an answer from elsewhere, ended by the question's end
        time.sleep(LOOK_SECONDS)
    return None


class TerminalAsker:
    """Asks one question at a time, even if several threads have one.

    Reads lines from the file descriptor, not from ``sys.stdin``: only the wait for a line may block.
    """

    def __init__(self, view: View, descriptor: int) -> None:
        self._view = view
        self._descriptor = descriptor
        self._lock = threading.Lock()  # waits: for the question before, ended by the end of either: see `acquire`

    def __call__(self, question: Question, is_over: Callable[[], bool]) -> Answer | None:
        # waits: for the question before, ended by the end of either
        while not self._lock.acquire(timeout=LOOK_SECONDS):
            if is_over():
                return None
        try:
            with self._view.paused(), self._without_typeahead():
                return self._ask(question, is_over) if self._in_foreground() else None
        finally:
            self._lock.release()

    def _ask(self, question: Question, is_over: Callable[[], bool]) -> Answer | None:
        for line in ("", *question_lines(question)):
            say(line)
        verdict = self._asked(question, is_over)
        if verdict is None and is_over():
            say(OVER)
        return verdict

    def _asked(self, question: Question, is_over: Callable[[], bool]) -> Answer | None:
        if question.words:
            return self._words(is_over)
        return self._values(question, is_over) if question.options or question.fields else self._verdict(is_over)

    def _values(self, question: Question, is_over: Callable[[], bool]) -> Answer | None:
        """The option and each field, asked for again until it is right; one that is left empty has its default."""
        say(TYPED)
        given: dict[str, str] = {}
        waiting = prompts(question)
        while waiting:
            name, prompt = waiting[0]
            say(f"{prompt}:")
            line = self._line(is_over)
            if line is None:
                return None
            word, _, reason = line.strip().partition(" ")
            if word.lower() == "reject":
                return self._rejection(reason.strip(), is_over)
            if problem := problem_of(question, name, line.strip()):
                say(problem)
                continue
            given |= {name: line.strip()} if line.strip() else {}
            waiting = waiting[1:]
        return Answer(True, values={**given})

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
        """Wait without a limit for the next line; None at the end of the input or when the question is over."""
        while not is_over():  # waits: for a person, ended by the question's end
            if not self._in_foreground():
                time.sleep(LOOK_SECONDS)
            elif select.select([self._descriptor], [], [], LOOK_SECONDS)[0]:
                return self._read() or None
        return None

    def _read(self) -> str:
        try:
            # waits: for nothing: `select` said that there is a line
            return os.read(self._descriptor, LONGEST_LINE).decode("utf-8", "replace")
        except OSError:  # the terminal is gone
            return ""

    def _in_foreground(self) -> bool:
        """Whether this process is in the foreground: a background process is stopped when it reads or flushes."""
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:  # not the controlling terminal of this process: it has no background
            return True

    @contextmanager
    def _without_typeahead(self) -> Iterator[None]:
        """Discard keys pressed before the question (not an answer) and half a line after it (not a shell command)."""
        self._discard_typeahead()
        try:
            yield
        finally:
            self._discard_typeahead()

    def _discard_typeahead(self) -> None:
        with suppress(termios.error):
            if self._in_foreground():
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
