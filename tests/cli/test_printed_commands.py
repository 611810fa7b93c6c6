"""Every command that is printed works when it is pasted: it changes what it says, or exits with 0.

Costs: each printed command is pasted into a run that printed it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import time
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from codex_multi_role.cli.main import main
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import Questions
from codex_multi_role.run_folder.events import RunEvent, TurnEnded
from codex_multi_role.run_folder.folder import PROGRAM, command_line
from tests.support.examples import EXAMPLES, arguments_of, copy_with_workspace
from tests.support.recorded_runs import make_run
from tests.support.teams import WRITER, Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

EXTENSIONS = find_spec("codex_multi_role.extensions") is not None
RUNS = "my runs"
"""Not the default folder of runs, so that every command must name it, and quote it."""
CONTINUE = {"answer", "approve", "batch", "fork", "reject", "resume"}
USAGE: Record = {"usage": {"input_tokens": 90, "output_tokens": 10}}
THREE: list[Record] = [{"id": name, "ask": "one"} for name in ("a", "b", "c")]
REVIEW: list[Record] = [
    {"id": "a", "ask": "one"},
    {"id": "ok", "review": "Good?", "next": [{"when": "steps.ok.approved", "end": "good"}, {"end": "no", "exit": 1}]},
]
TWO_REVIEWS: list[Record] = [{"id": "ok", "review": "Good?", "for_each": {"items": ["x", "y"], "concurrency": 2}}]
MISSED: list[Record] = [{"id": "a", "ask": "one", "next": [{"end": "timeout", "exit": 1}]}]
SLOW = ("pair", "fix-until-green")
"""Examples that run their tests several times; what follows tests is printed about ``first-green`` as well."""
QUOTA: Record = {"fault": {"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "no more"}}}}


@dataclass(frozen=True)
class Ending:
    """A run that ends so. ``then``: commands given after it; ``shows``: whether `show` prints what to type next."""

    exit_code: int
    steps: list[Record] = field(default_factory=lambda: THREE)
    options: tuple[str, ...] = ()
    play: Record = field(default_factory=lambda: {**say(), **USAGE})
    limits: Record = field(default_factory=dict)
    then: tuple[str, ...] = ()
    shows: bool = True


ENDINGS = {
    "done": Ending(0, shows=False),
    "cycles used up": Ending(1, [], ("--cycles", "1")),
    "gate": Ending(1, MISSED),
    "review": Ending(4, REVIEW),
    "two questions": Ending(4, TWO_REVIEWS),
    "rejected": Ending(1, REVIEW, then=("reject", "--comment", "no", "--resume")),
    "approved": Ending(0, REVIEW, then=("approve",)),
    "turns": Ending(5, options=("--max-turns", "1")),
    "tokens": Ending(5, options=("--max-tokens", "50")),
    "seconds": Ending(5, options=("--max-seconds", "0.001")),
    "two limits": Ending(5, options=("--max-tokens", "50", "--max-turns", "1")),
    "limit of a role": Ending(5, limits={"max_turns": 1}, shows=False),
    "quota": Ending(5, play=QUOTA),
    "role failed": Ending(3, play={"fault": {"status": 400}}),
    "declined": Ending(3, play={"json": {"error": "not mine"}}),
    "interrupted": Ending(130),
}


@dataclass(frozen=True)
class Shell:
    """Commands in ``folder``, as a person types them."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch

    def give(self, *arguments: str) -> tuple[int, str]:
        self.patch.setattr("sys.argv", [PROGRAM, *arguments])
        code = main()
        said = self.capture.readouterr()
        return code, said.out + said.err

    @property
    def state(self) -> dict[str, tuple[object, ...]]:
        """Each run's outcome, number of turns and open questions."""
        runs = {path.parent: read(path) for path in Path(RUNS).glob("*/run.json")}
        return {
            folder.name: (run["outcome"], run["totals"]["turns"], len(Questions(folder).pending()))
            for folder, run in runs.items()
        }


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setattr("codex_multi_role.steps.recovery.FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys, monkeypatch)


def end(shell: Shell, ending: Ending) -> str:
    """All that is printed about the run: by itself, by its reports for CI, and by `show`."""
    team = TeamFolder(shell.folder, {"one": {"limits": ending.limits}}, {"one": [ending.play] * 3})
    flow = ("--flow", "own") if ending.steps else ()
    if ending.steps:
        with_flow(team, {"steps": ending.steps})
    where = ("--runs-dir", RUNS)
    of_team = ("--roles", "roles", "--workspace", "workspace", "--playbook", "playbook.yaml", "--no-run-tests", *where)
    reports = ("--summary", "summary.md", "--junit", "junit.xml") if EXTENSIONS else ()
    code, text = shell.give("run", "--goal", "reach it", *of_team, *flow, *reports, *ending.options)
    if ending.then:
        code, text = shell.give(ending.then[0], *where, *ending.then[1:])
        shell.give("report", *where)
    shown = shell.give("show", *where)[1]
    assert (code, "next:" in shown) == (ending.exit_code or 0, ending.shows), text + shown
    assert f"next: {PROGRAM} show" not in shown  # it is what was just typed
    files = [] if ending.then else [Path(name).read_text() for name in reports[1::2]]
    return "\n".join([text, shown, *files, read_report(shell)])


def read_report(shell: Shell) -> str:
    page = Path(RUNS) / "latest/report.html"
    return re.sub(r"<[^>]*>", "`", page.read_text().replace("&#39;", "'")) if page.is_file() else ""


def commands(text: str) -> list[str]:
    """The commands in the text, each once: up to the end of its code, of its line, or up to the alternative."""
    found = re.findall(rf"{PROGRAM} [a-z-]+ (?!RUN)[^`\n]+?(?=`|\n|, or {PROGRAM}|</|\"|$)", text)
    return list(dict.fromkeys(each.strip() for each in found if each.split()[1] not in ("run",)))


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Ctrl-C after the first turn, for the run that is interrupted."""
    if request.node.callspec.params["name"] != "interrupted":
        return
    apply = Course.apply
    pressed: list[bool] = []

    def interrupt(course: Course, event: RunEvent) -> None:
        apply(course, event)
        if isinstance(event, TurnEnded) and not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    monkeypatch.setattr(Course, "apply", interrupt)


@pytest.mark.usefixtures("interrupting")
@pytest.mark.parametrize("name", ENDINGS)
def test_every_command_printed_about_a_run_works(shell: Shell, name: str) -> None:
    """Those that continue change the state of the runs, all others exit with 0."""
    assert_all_work(shell, commands(end(shell, ENDINGS[name])))


def assert_all_work(shell: Shell, printed: list[str]) -> None:
    assert printed
    shutil.copytree(RUNS, "before", symlinks=True)
    for command in printed:
        before = shell.state
        code, text = shell.give(*shlex.split(command)[1:])
        if command.split()[1] in CONTINUE:
            assert shell.state != before, (command, text)
            assert code not in (2, 130), (command, text)
        else:
            assert code == 0, (command, text)
        shutil.rmtree(RUNS)
        shutil.copytree("before", RUNS, symlinks=True)


@pytest.mark.extensions
@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.name not in SLOW], ids=lambda each: each.name)
def test_every_command_printed_about_an_example_works(shell: Shell, example: Path) -> None:
    """At the end of the run, by `show`, on its page and in its reports for CI."""
    shell.patch.chdir(copy_with_workspace(example, shell.folder))
    where, reports = ("--runs-dir", RUNS), ("--summary", "summary.md", "--junit", "junit.xml")
    code, text = shell.give(*arguments_of(example), *where, *reports)
    assert code == 0, text
    files = [Path(name).read_text() for name in ("summary.md", "junit.xml")]
    printed = commands("\n".join([text, shell.give("show", *where)[1], *files, read_report(shell)]))
    assert_all_work(shell, [each for each in printed if each not in Path("playbook.yaml").read_text()])


@pytest.mark.extensions
def test_commands_that_print_what_was_cut_work(shell: Shell) -> None:
    """A long result and a long file, whose name needs quotes, from a folder that is not the workspace."""
    lines = "".join(f"line {number}\n" for number in range(400))
    files = [{"path": name, "content": lines} for name in ("-a b.txt", "sub/c d.txt")]
    team = TeamFolder(shell.folder, {"one": WRITER}, {"one": [say(files=files, text=lines)]})
    with_flow(team, {"steps": [{"id": "a", "ask": "one"}], "result": {"title": "T", "text": "{{ steps.a.text }}"}})
    given = ("--roles", "roles", "--workspace", "workspace", "--playbook", "playbook.yaml", "--flow", "own")
    code, text = shell.give("run", "--goal", "reach it", *given, "--no-run-tests", "--runs-dir", RUNS)
    assert code == 0, text
    shown = shell.give("show", "--runs-dir", RUNS)[1]
    printed = commands(f"{text}\n{shown}\n{read_report(shell)}")
    assert [each.split()[1] for each in printed] == ["show", "show", "blame", "blame"], printed
    assert_all_work(shell, printed)
    assert "line 399" in shell.give(*shlex.split(printed[2])[1:])[1]


REFUSED = {
    "unknown run": (ENDINGS["done"], ("show", "nosuch")),
    "known run": (ENDINGS["gate"], ("run", "--run-id", "taken", "--goal", "again", "--playbook", "playbook.yaml")),
    "several questions": (ENDINGS["two questions"], ("approve",)),
    "no result": (ENDINGS["done"], ("show", "--result")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_every_command_in_a_refusal_works(shell: Shell, name: str) -> None:
    ending, refused = REFUSED[name]
    end(shell, replace(ending, options=(*ending.options, "--run-id", "taken")))
    code, text = shell.give(*refused, "--runs-dir", RUNS)
    assert code == 2, text
    assert_all_work(shell, commands(text))


@pytest.mark.parametrize(
    ("words", "runs_dir", "command"),
    [
        (("show", "r"), "runs", "show r"),
        (("show", "r"), "-my 'runs'", """show r --runs-dir '-my '"'"'runs'"'"''"""),
        (("fork", "r", "--task", "-T 1"), "x", "fork r --task '-T 1' --runs-dir x"),
    ],
)
def test_commands_are_quoted_for_a_shell(words: tuple[str, ...], runs_dir: str, command: str) -> None:
    assert command_line(*words, runs_dir=Path(runs_dir)) == f"{PROGRAM} {command}"


def test_runs_in_a_text_are_named_where_they_are_recorded(tmp_path: Path) -> None:
    """A run's own texts name only itself, and other runs of its database."""
    folder = make_run(tmp_path / "copies", "first", shared={"database": "postgresql://db/x"})
    text = f"`{PROGRAM} resume RUN` and `{PROGRAM} show RUN=first-1`; RUN stays"
    url = "--database-url postgresql://db/x"
    named = f"`{PROGRAM} resume first {url}` and `{PROGRAM} show first-1 {url}`; RUN stays"
    assert folder.complete(text) == named
