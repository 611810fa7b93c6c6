"""No wait without an end: each call of the package that may block has a time-out, or a comment that names its end.

The comment is at its place or above it: ``# waits: for what, ended by what``. A lock has it where it is made, and says
what its holder does. What blocks is recognized by its name, because types are missing; ``result`` and ``exception``
are a future's only in modules that name futures. So the comment also stands at calls that only look like a wait.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import codex_multi_role

PACKAGE = Path(codex_multi_role.__file__).parent
COMMENT = re.compile(r"# waits: \w+")
NAMES_FUTURES = re.compile(r"\bFuture\b|PoolExecutor|\.submit\(")
Blocks = Callable[[ast.Call], bool]


def given(call: ast.Call, place: int, name: str) -> bool:
    """Whether the argument is there, by its place or by name, and not None."""
    values = [*call.args[place : place + 1], *(each.value for each in call.keywords if each.arg in (name, None))]
    return any(not (isinstance(value, ast.Constant) and value.value is None) for value in values)


def lacks(place: int) -> Blocks:
    return lambda call: not given(call, place, "timeout")


def lacks_word(*words: str) -> Blocks:
    return lambda call: not any(word in ast.unparse(call) for word in words)


def lacks_all(call: ast.Call) -> bool:
    """``get()``, ``join()``: of a dictionary or of a text they have arguments."""
    return not call.args and not given(call, 9, "timeout")


def always(_: ast.Call) -> bool:
    return True


METHODS: dict[str, Blocks] = {
    **dict.fromkeys(["wait", "result", "exception", "select"], lacks(0)),
    **dict.fromkeys(["get", "join"], lacks_all),
    **dict.fromkeys(["readline", "accept", "recv", "handle_request", "serve_forever", "lockf"], always),
    **dict.fromkeys(["epoll", "getchar", "confirm", "get_result", "get_event", "urlopen"], lacks(9)),
    **dict.fromkeys(["wait_for", "communicate", "create_connection"], lacks(1)),
    **dict.fromkeys(["Lock", "RLock", "Condition"], always),
    "acquire": lacks_word("timeout=", "False"),
    "flock": lacks_word("LOCK_NB"),
    "waitpid": lacks_word("WNOHANG"),
    "shutdown": lambda call: not call.args and lacks_word("wait=False")(call),
}
FUNCTIONS: dict[str, Blocks] = {
    **{f"subprocess.{name}": lacks(99) for name in ("run", "call", "check_call", "check_output")},
    **dict.fromkeys(["os.system", "os.wait", "os.wait3", "os.wait4", "os.read", "select.poll"], always),
    **dict.fromkeys(["input", "subprocess.getoutput", "sys.stdin.read", "self.rfile.read", "socket.socket"], always),
    **dict.fromkeys(["Lock", "RLock"], always),
    "os.waitid": lacks_word("WNOHANG"),
    "select.select": lacks(3),
    "wait": lacks(1),
    "self._inbox.put": lacks(2),
}
LAST_NAMES = METHODS.keys() | {name.rpartition(".")[2] for name in FUNCTIONS}
OF_FUTURES = ("result", "exception")
WAITS_AT_ITS_END = ("Popen", "PoolExecutor")
PAUSES = ("sleep", "wait", "acquire", "select", "next_message")
ENDS_BY_CLOCK = ("monotonic()", "deadline")


def waits(tree: ast.AST, *, has_futures: bool = True) -> Iterator[tuple[int, int]]:
    """The first and last line of what may wait without an end: a call, a ``with`` that waits as it ends, a loop."""
    for node in ast.walk(tree):
        match node:
            case ast.Call() if blocks(node, has_futures):
                yield node.lineno, node.end_lineno or 0
            case ast.With(items=items) if any(waits_at_its_end(item.context_expr) for item in items):
                yield node.lineno, node.body[0].lineno - 1
            case ast.While(test=test) if pauses(node) and lacks_word(*ENDS_BY_CLOCK)(node):  # type: ignore[arg-type]
                yield node.lineno, test.end_lineno or 0


def blocks(call: ast.Call, has_futures: bool) -> bool:
    last = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
    if last not in LAST_NAMES:
        return False
    of_method = METHODS.get(last) if isinstance(call.func, ast.Attribute) else None
    known = FUNCTIONS.get(ast.unparse(call.func)) or of_method
    return known is not None and known(call) and (has_futures or last not in OF_FUTURES)


def waits_at_its_end(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Call) and ast.unparse(expression.func).endswith(WAITS_AT_ITS_END)


def pauses(loop: ast.While) -> bool:
    calls = [ast.unparse(node) for node in ast.walk(loop) if isinstance(node, ast.Call)]
    return any(each.partition("(")[0].endswith(PAUSES) or "timeout=" in each or "_SECONDS" in each for each in calls)


def wrong(source: str) -> Iterator[tuple[int, str]]:
    """The lines of waits that lack the comment, and of comments without a wait."""
    lines = source.splitlines()
    unused = {number for number, line in enumerate(lines, 1) if COMMENT.search(line)}
    spans = sorted(waits(ast.parse(source), has_futures=bool(NAMES_FUTURES.search(source))))
    named = set()
    for first, last in spans:
        above = first - 1
        while lines[above - 1].lstrip().startswith("#"):
            above -= 1
        if comments := unused.intersection(range(above + 1, last + 1)):
            named |= comments
        else:
            yield last, "neither a time-out nor a comment `# waits: for what, ended by what`"
    yield from ((number, "nothing waits here") for number in unused - named)


@pytest.mark.extensions
def test_every_wait_of_the_package_has_a_deadline_or_a_reason() -> None:
    modules = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    found = [f"{path}:{line}: {what}" for path, source in modules.items() for line, what in wrong(source)]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "child.wait(timeout=None)",
        "inbox.get()",
        "lock = threading.Lock()",
        "future.result()  # of a Future",
        "wait(futures)",
        "selector.select()",
        "fcntl.flock(file, fcntl.LOCK_EX)",
        "with subprocess.Popen(['git']) as child: pass",
        "while True: event.wait(0.1)",
    ],
)
def test_wait_without_a_deadline_is_found_unless_it_is_named(code: str) -> None:
    assert len([*wrong(f"1\n{code}")]) == 1
    assert not [*wrong(f"# waits: for it\n{code}")]
    assert len([*wrong(f"# waits: for it\n{code}\n\n# waits: for nothing\nchild.wait(3)")]) == 1
