"""Texts of any size and kind, from a model, a test or a command: kept within bounds, told plainly, never the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.limits.large import MOST_MEGABYTES, PYTHON, answering, command, run_alone
from tests.support.teams import Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

FLOOD = "import sys\nfor _ in range(10_000): sys.stdout.write('x' * 999 + chr(10))\n"
STRANGE = "sys.stdout.buffer.write(bytes([255, 0, 254]) + chr(10).encode())\n"
KEPT = 2_200_000


@pytest.mark.long
def test_answer_of_megabytes_is_kept_and_passed_on_as_file(tmp_path: Path) -> None:
    """The next role's prompt is shortened and names the file with the whole prompt."""
    words = ["word " * 200_000] * 5
    plays = {"one": [say(words=words)], "two": [say("read it", seen="{{ prompt[-500:] }}")]}
    team = TeamFolder(tmp_path, {"one": {}, "two": {"depends_on": ["one"]}}, {})
    with answering(plays) as settings:
        report = team.run(playbook=None, config=settings)
    assert report.outcome == "cycles_used_up", report.reason
    assert read(report.folder / "one/turn_001/handoff.json")["words"] == words
    turn = report.folder / "two/turn_001"
    sent, whole = (turn / "prompt.txt").read_text(), (turn / "prompt_whole.txt").read_text()
    assert f"The whole prompt is in the file {turn / 'prompt_whole.txt'}" in sent
    assert sent.startswith("Role: two\n")
    assert sent.endswith(whole[-1_000:])
    assert len(sent) < 201_000
    assert whole.count(words[0]) == len(words)
    assert read(turn / "handoff.json")["seen"] == sent[-500:]
    (warning,) = team.of_type("warning")
    assert warning["message"].startswith(f"two: its prompt has {len(whole)} characters, Codex accepts 1048576")


@pytest.mark.long
def test_answer_in_very_many_pieces_is_whole_and_cheap(tmp_path: Path) -> None:
    """Memory, events and log size stay small."""
    pieces = 200_000
    words = "wörd " * (pieces // 2)
    answer: Record = {"text": json.dumps({"summary": "long", "words": words}), "deltas": pieces}
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {})
    with answering({"one": [answer], "two": [say("heard")]}) as settings:
        code, most, events = run_alone(team, model=settings)
    assert code == 1, events[-1]
    assert most < MOST_MEGABYTES
    assert [event["status"] for event in events if event["type"] == "turn_ended"] == ["completed"] * 2
    (run,) = team.runs.glob("2*")
    turn = run / "one/turn_001"
    assert read(turn / "handoff.json")["words"] == words
    assert (turn / "delta_text.txt").read_text() == (turn / "assistant_text.txt").read_text() == answer["text"]
    kept = (run / "one/events.jsonl").stat().st_size
    assert kept < 4 * len(answer["text"]) + 100_000, "its pieces, and the whole, each as JSON"
    assert len([event for event in events if event["type"] == "role_activity"]) < 1_000


def test_goal_of_any_characters_reaches_the_role(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say("{{ prompt[:200] }}")]})
    report = team.run(goal="a\0b \ud800 c \x1b[31m red")
    heard = read(report.folder / "one/turn_001/handoff.json")["summary"]
    assert "a\0b \ufffd c \x1b[31m red" in heard


def test_answer_nested_too_deeply_is_asked_for_again(tmp_path: Path) -> None:
    deep = {"text": '{"a":' * 20_000 + "1" + "}" * 20_000, "repairs": [say("flat")]}
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [deep]})
    report = team.run()
    assert [status for _, _, status in team.turns()] == ["invalid_reply", "completed"]
    assert team.of_type("turn_ended")[0]["reason"] == "The answer repeats itself without an end. Write each part once."
    assert read(report.folder / "one/turn_002/handoff.json") == {"summary": "flat"}


@pytest.mark.real
def test_tests_with_huge_binary_output_have_result(tmp_path: Path) -> None:
    """They print ten megabytes and bytes that are not text."""
    test = "import sys\ndef test_it():\n    " + f"{FLOOD}{STRANGE}assert 0".replace("\n", "\n    ")
    files = [{"path": "test_it.py", "content": test}, {"path": "nul\0.txt", "content": "x"}]
    files.append({"path": "nul.txt", "content": "a\0b"})
    writer: Record = {"behaviors": {"apply_files": True}, "prompt_flags": {"allow_file_suggestions": True}}
    team = TeamFolder(tmp_path, {"one": writer, "two": {}}, {"one": [say(files=files)], "two": [say()]})
    report = team.run(run_tests=True, pytest_cmd=f"{PYTHON} -m pytest -q -s -p no:cacheprovider")
    result = read(report.folder / "tests/001/result.json")
    assert (result["status"], result["failed"]) == ("failed", 1)
    output = (report.folder / "tests/001/pytest_output.txt").read_text()
    assert "bytes left out" in output
    assert "\ufffd\0\ufffd" in output
    assert len(output) < KEPT
    applied = read(report.folder / "one/turn_001/applied_files.json")
    assert [entry.get("reason") for entry in applied] == [None, "invalid path", None]
    assert (team.workspace / "nul.txt").read_bytes() == b"a\0b"
    assert [turn[0] for turn in team.turns()] == ["one", "two"]


@pytest.mark.real
def test_commands_with_huge_deep_or_binary_output_have_results(tmp_path: Path) -> None:
    codes = {
        "flood": FLOOD,
        "deep": "print('[' * 100_000 + ']' * 100_000)",
        "strange": f"import sys\n{STRANGE}",
        "surrogate": r"""print('["\\ud800"]')""",
    }
    steps = [{"id": name, "check": "command", "with": {"argv": [PYTHON, "-c", code]}} for name, code in codes.items()]
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    with_flow(team, {"steps": [*steps, {"ask": "one"}]}, "mine")
    report = team.run(flow="mine")
    assert report.outcome == "success"
    results = {name: read(report.folder / f"checks/{name}.1/result.json") for name in codes}
    assert {name: (result["status"], result["json"]) for name, result in results.items()} == {
        "flood": ("ok", None),
        "deep": ("ok", None),
        "strange": ("ok", None),
        "surrogate": ("ok", ["?"]),
    }
    assert results["strange"]["stdout"] == "\ufffd\0\ufffd\n"
    assert results["flood"]["truncated"]
    assert (report.folder / "checks/flood.1/output.txt").stat().st_size < KEPT


@pytest.mark.long
def test_role_command_with_huge_output_needs_few_resources(tmp_path: Path) -> None:
    """Megabytes in Codex's sandbox, in lines, then some in one line that is not text. Both turns complete."""
    megabytes = 100
    lines = f"sys.stdout.write('x' * 999 + chr(10)) for _ in range({megabytes * 1000})"
    flood = f"import sys; [{lines}]; open('flooded', 'w')"
    strange = (
        f"import sys; [sys.stdout.buffer.write(bytes([255, 0, 254, 120]) * 1000) for _ in range({megabytes * 50})]"
    )
    writer: Record = {"prompt_flags": {"allow_write": True}}
    steps = [command(flood), command(strange), say("heard {{ tool_outputs | length }}")]
    team = TeamFolder(tmp_path, {"one": writer}, {"one": [{"steps": steps}, say("and on")]})
    code, most, events = run_alone(team, "--cycles", "2")
    assert code == 1, events[-1]
    assert most < MOST_MEGABYTES
    ended = [event for event in events if event["type"] == "turn_ended"]
    assert [(event["status"], event["summary"]) for event in ended] == [
        ("completed", "heard 2"),
        ("completed", "and on"),
    ]
    assert (team.workspace / "flooded").exists()
    (run,) = team.runs.glob("2*")
    log = run / "one/events.jsonl"
    # 1 MB of each as its item, where what is no text takes thrice that; 1 MB of all
    assert log.stat().st_size < 8_000_000
    assert (run / "one/turn_001/items_text.md").stat().st_size < 100_000
    assert (run / "events.jsonl").stat().st_size < 10_000
