"""Whether ``testgen`` finds planted bugs whatever the developer writes: sixty programs, each with a bug and without.

Whole runs on a package of all programs: the plan has one item for each, the roles are scripted, and all that the flow
measures is measured in the sandbox. The developer asserts what the program with the bug does, in its first answer
(``contrary first``), or after a first answer that was right but had a broken test (``after a failure``), or after the
right test failed for an item that the tool cannot evaluate (``not evaluated``); or tests nothing of it (``left out``).
Of the programs without a bug, the first answer to ``contrary first`` is wrong as well, and the second one right.

    python benchmarks/planted_bugs.py [--programs 60] [--way WAY …]

Prints how many programs have a suspected bug, and how long a run takes. Exits with 1 unless that is each program with a
bug and none without, no test stays that takes the bug for right, and right programs succeed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.extensions.test_generation.programs.planted import Program, planted
from tests.support.generation import Generation
from tests.support.models import message
from tests.support.scripted_codex import Json, Turn, codex_replaced

WAYS = ("contrary first", "after a failure", "not evaluated", "left out")
NAMED = re.compile(r"for programs/(\w+)\.py")


def outcome(program: Program) -> str:
    """What the call gives in the version with the bug."""
    names: dict[str, Any] = {}
    exec(program.text(has_bug=True), names)
    try:
        return repr(eval(program.call, names))
    except Exception as error:
        return f"raises:{type(error).__name__}"


def test_of(call: str, gives: str) -> str:
    """A test that the call gives that."""
    kind, _, value = gives.partition(":")
    says = {
        "is": f"assert {call} is {value.title()}" if value != "nan" else f"assert math.isnan({call})",
        "raises": f"with pytest.raises({value}):\n        {call}",
        "close": f"assert {call} == pytest.approx({value})",
    }
    return f"def test_it():\n    {says.get(kind, f'assert {call} == {gives}')}\n"


@dataclass
class Roles:
    """What the planner and the developer answer about ``programs``."""

    programs: dict[str, Program]
    has_bug: bool
    way: str
    asked: Counter[str] = field(default_factory=Counter)

    def answer(self, turn: Turn) -> Iterator[Json]:
        named = NAMED.search(turn.prompt)
        assert named, turn.prompt[:500]
        name = named[1]
        if "Write pytest tests for" in turn.prompt:
            self.asked[name] += 1
            yield from message(json.dumps({"code": self.tests(self.programs[name], self.asked[name])}))
        elif "These items of your plan" in turn.prompt:
            yield from message(json.dumps({"withdrawn": []}))
        else:
            setup = ["open('not_there')"] if self.way == "not evaluated" else []
            yield from message(json.dumps({"plan": [self.programs[name].item(1, setup=setup)]}))

    def tests(self, program: Program, number: int) -> str:
        name, (right, wrong) = program.name, (test_of(program.call, each) for each in (program.gives, outcome(program)))
        other = f"def test_other():\n    assert callable({name})\n"
        broken = f"def test_other():\n    assert calable({name})\n"
        gives_in = wrong if self.has_bug else right
        answers = {
            "contrary first": [wrong, gives_in],
            "after a failure": [f"{right}\n\n{broken}", f"{gives_in}\n\n{other}"],
            "not evaluated": [right, gives_in],
            "left out": [other],
        }[self.way]
        head = f"import math\n\nimport pytest\n\nfrom programs.{name} import {name}\n\n\n"
        return head + answers[min(number, len(answers)) - 1]


def tried(folder: Path, programs: dict[str, Program], has_bug: bool, way: str) -> list[str]:
    """What is wrong after a run, by program; prints its figures."""
    files = {f"programs/{name}.py": each.text(has_bug) for name, each in programs.items()}
    given = Generation(folder, {"programs/__init__.py": "", **files})
    began = time.monotonic()
    with codex_replaced(Roles(programs, has_bug, way).answer):
        report = given.run("programs", sandbox=True, target_coverage=0, max_iterations=2, concurrency=2)
    seconds = time.monotonic() - began
    results = {Path(each["file"]).stem: each for each in given.results}
    suspected = [name for name, each in results.items() if each["suspected_bugs"]]
    kept = [name for name, each in results.items() if any("def test_it" in given.text(path) for path in each["tests"])]
    kind = "with a bug" if has_bug else "without"
    end = f"{report.outcome} ({report.exit_code}), {len(given.asked)} turns, {seconds:.0f} s"
    print(f"{way:<16}{kind:<11}{len(suspected):3} of {len(results)} suspected, {end}", flush=True)
    if has_bug:
        missed = [f"{name}: not suspected" for name in programs if name not in suspected]
        return [*missed, *(f"{name}: a wrong test stays" for name in kept)]
    return [
        f"{name}: {each['status']}: {each['reason']}" for name, each in results.items() if each["status"] != "success"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=60)
    parser.add_argument("--way", choices=WAYS, action="append")
    options = parser.parse_args()
    programs = {each.name: each for each in planted()[: options.programs]}
    wrong = []
    for way in options.way or WAYS:
        for has_bug in (True, False):
            with tempfile.TemporaryDirectory() as name:
                wrong += [f"{way}: {each}" for each in tried(Path(name), programs, has_bug, way)]
    print("\n".join(wrong or ["as expected"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
