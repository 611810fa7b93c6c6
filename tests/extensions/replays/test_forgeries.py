"""Every forged bundle is refused, for the reason that applies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.extensions.replays.verifying import verify_bundle
from tests.support.bundles import RIGHT, TESTS, Parts, bundled, shop_team
from tests.support.long_run import by_default

pytestmark = pytest.mark.usefixtures("scripted_codex")

Forge = Callable[[Parts], None]
UNKNOWN = "e" * 40
FORGERIES: dict[str, tuple[Forge, str]] = {}
OF_TESTS: dict[str, tuple[Forge, str]] = {}
QUICK = {
    "invented_line",
    "unknown_state",
    "broken_chain",
    "swapped_changes",
    "claims_of_another_run",
    "recording_without_end",
}
"""They are refused before anything runs."""
BY_DEFAULT = {*QUICK, "later_state", "role_prompt", "invented_step"}


def forgery(words: str, kind: dict[str, tuple[Forge, str]] = FORGERIES) -> Callable[[Forge], None]:
    """Register a way to forge; ``words`` are in the refusal."""

    def register(forge: Forge) -> None:
        kind[forge.__name__] = (forge, words)

    return register


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundled(shop_team(tmp_path_factory.mktemp("tested")), run_tests=True)


@forgery("the workspace is not in the state in which the recording started")
def first_state(parts: Parts) -> None:
    old = parts.observed["first"]
    new = parts.with_file(old, "readme.md", "Another shop.\n")
    parts.observed["first"] = parts.observed["changes"][0]["before"] = new


@forgery("turn writer 1, write.1: readme.md")
def first_state_and_recording(parts: Parts) -> None:
    old = parts.observed["first"]
    parts.replace_state(old, parts.with_file(old, "readme.md", "Another shop.\n"))


@forgery("turn writer 1, write.1: shop.py")
def later_state(parts: Parts) -> None:
    old = parts.observed["changes"][0]["after"]
    parts.replace_state(old, parts.with_file(old, "shop.py", RIGHT + "\n"))


@forgery("turn writer 2, fix.1: shop.py")
def claimed_tree(parts: Parts) -> None:
    parts.observed["changes"][1]["after"] = parts.observed["first"]


@forgery("the state eeeeeeeeeeee is claimed, but not in the bundle")
def unknown_state(parts: Parts) -> None:
    parts.observed["changes"][1]["after"] = UNKNOWN


@forgery("turn writer 2, fix.1: it starts from a state to which nothing led")
def broken_chain(parts: Parts) -> None:
    parts.observed["changes"][1]["before"] = parts.observed["first"]


@forgery("turn writer 2, fix.1: it starts from a state to which nothing led")
def swapped_changes(parts: Parts) -> None:
    parts.observed["changes"].reverse()


@forgery("the next change of the workspace is by: claimed nothing, now turn writer 2, fix.1")
def change_missing_in_claims(parts: Parts) -> None:
    parts.observed["changes"].pop()


@forgery("role writer, visit 2, unit fix.1: its prompt differs from the recorded one")
def answered_text(parts: Parts) -> None:
    parts.answer(0, parts.text(0).replace("write 1", "wrote it"))


@forgery("role judge, visit 1, unit judge.1: its prompt differs from the recorded one")
def answered_file(parts: Parts) -> None:
    parts.answer(1, parts.text(1).replace("n + n", "2 * n"))


@forgery("role writer, visit 2, unit fix.1: its prompt differs from the recorded one")
def swapped_answers(parts: Parts) -> None:
    first, second = parts.text(0), parts.text(1)
    parts.answer(0, second)
    parts.answer(1, first)


@forgery("turn 1 of the run: claimed judge 1, judge.1 (completed), now writer 1, write.1 (completed)")
def swapped_turns(parts: Parts) -> None:
    parts.observed["turns"].reverse()


@forgery("turn 3 of the run: claimed none, now judge 1, judge.1 (completed)")
def turn_missing_in_claims(parts: Parts) -> None:
    parts.observed["turns"].pop()


@forgery("turn 4 of the run: claimed judge 2, judge.1 (completed), now none")
def turn_added_to_claims(parts: Parts) -> None:
    parts.observed["turns"].append({**parts.observed["turns"][2], "turn": 2})


@forgery("turn 2 of the run: claimed writer 2, fix.1 (failed), now writer 2, fix.1 (completed)")
def status_of_a_turn(parts: Parts) -> None:
    parts.observed["turns"][1]["status"] = "failed"


@forgery("role writer, visit 2, unit fix.1: this turn is not recorded")
def turn_missing_in_recording(parts: Parts) -> None:
    parts.recording.remove(parts.exchanges[1])


@forgery("1 recorded turn of judge, judge.1 that the run does not ask for")
def turn_added_to_recording(parts: Parts) -> None:
    parts.recording.insert(-1, {**parts.exchanges[2], "visit": 2, "turn": "another"})


@forgery("recorded answers that their turns do not ask for: lines 5")
def invented_step(parts: Parts) -> None:
    parts.recording.insert(-1, {**parts.exchanges[0], "step": 7})


@forgery("the recording has lines that no run writes: lines 3")
def invented_line(parts: Parts) -> None:
    parts.recording.insert(2, {"type": "verdict", "text": "perfect"})


@forgery("figure judgements: claimed 7, now 1")
def figure(parts: Parts) -> None:
    parts.observed["figures"]["judgements"] = 7


@forgery("figure mutation score: claimed 100, now none")
def added_figure(parts: Parts) -> None:
    parts.observed["figures"]["mutation score"] = 100


@forgery("outcome is success, recorded: perfect")
def outcome(parts: Parts) -> None:
    parts.ended["outcome"] = "perfect"


@forgery("exit_code is 0, recorded: 1")
def exit_code(parts: Parts) -> None:
    parts.ended["exit_code"] = 1


@forgery("file shop.py: content differs from the recording")
def recorded_file(parts: Parts) -> None:
    parts.ended["files"]["shop.py"] = UNKNOWN


@forgery("handoff of judge (judge.1): recorded but missing now")
def recorded_handoff(parts: Parts) -> None:
    parts.ended["handoffs"][0]["handoff"]["summary"] = "perfect"


@forgery("role writer, visit 1, unit write.1: its prompt differs from the recorded one")
def goal(parts: Parts) -> None:
    parts.recording[0]["goal"] = "another goal"


@forgery("role writer, visit 1, unit write.1: its prompt differs from the recorded one")
def role_prompt(parts: Parts) -> None:
    parts.team["team/catalog.yaml"] = parts.team["team/catalog.yaml"].replace("Do it.", "Do it well.")


@forgery("1 recorded turn of writer, fix.1 that the run does not ask for")
def flow(parts: Parts) -> None:
    flow = parts.team["team/flows/own.yaml"]
    parts.team["team/flows/own.yaml"] = flow.replace("- ask: writer\n  id: fix\n", "")


@forgery("the claims are of run another, the answers of run ")
def claims_of_another_run(parts: Parts) -> None:
    parts.claims["run"] = "another"


@forgery("the recording was cut short: its run did not end")
def recording_without_end(parts: Parts) -> None:
    parts.recording.pop()


@forgery("tests after writer 1: claimed passed, 1 passed, 1 failed", OF_TESTS)
def test_verdict(parts: Parts) -> None:
    parts.observed["tests"][0]["status"] = "passed"


@forgery("tests after writer 2: claimed passed, 20 passed; now passed, 2 passed", OF_TESTS)
def count_of_passed_tests(parts: Parts) -> None:
    parts.observed["tests"][1]["passed"] = 20


@forgery("tests after writer 1: claimed failed, 1 passed, 1 failed, test_shop::test_other; now ", OF_TESTS)
def failing_test(parts: Parts) -> None:
    parts.observed["tests"][0]["failures"] = ["test_shop::test_other"]


@forgery("tests after writer 2: claimed passed, 2 passed; now none", OF_TESTS)
def result_missing_in_claims(parts: Parts) -> None:
    parts.recording[0]["run_tests"] = False


@forgery("tests after writer 1: claimed none; now failed, 1 passed, 1 failed, test_shop::test_three", OF_TESTS)
def hidden_results(parts: Parts) -> None:
    parts.observed["tests"] = []


@forgery("the last tests on the first state: claimed passed, 2 failed", OF_TESTS)
def tests_green_before(parts: Parts) -> None:
    parts.claims["tests_before"]["status"] = "passed"


@forgery("the last tests on the first state: claimed none; now failed", OF_TESTS)
def tests_before_missing(parts: Parts) -> None:
    parts.claims["tests_before"] = None


@forgery(
    "tests after writer 1: claimed failed, 1 passed, 1 failed, test_shop::test_three; now passed, 2 passed", OF_TESTS
)
def weakened_tests(parts: Parts) -> None:
    weak = TESTS.replace("== 6", "!= 0")
    for state in {parts.observed["first"], *(change["after"] for change in parts.observed["changes"])}:
        parts.replace_state(state, parts.with_file(state, "test_shop.py", weak))


def refusal(bundle: Path) -> list[str]:
    """Why it is refused; it has to be."""
    result = verify_bundle(bundle, {})
    assert result.exit_code == 1
    assert result.verdict.startswith("refused: ")
    return [line.text for line in result.lines if line.status == "differs"]


@pytest.mark.real
@pytest.mark.parametrize("name", by_default(BY_DEFAULT, FORGERIES))
def test_forged_bundle_is_refused(name: str, shop_bundle: Path, tmp_path: Path) -> None:
    forge, words = FORGERIES[name]
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    forge(parts)
    found = refusal(parts.write(tmp_path / "forged.bundle"))
    assert any(words in each for each in found), found


@pytest.mark.long
@pytest.mark.parametrize("name", OF_TESTS)
def test_forged_test_results_are_refused(name: str, tested: Path, tmp_path: Path) -> None:
    forge, words = OF_TESTS[name]
    parts = Parts.of(tested, tmp_path / "parts")
    forge(parts)
    found = refusal(parts.write(tmp_path / "forged.bundle"))
    assert any(words in each for each in found), found
