"""The flow that is drawn has the way that the run took, and nothing in it lies on a text."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from codex_multi_role.catalog import FlowSpec, read_flows
from codex_multi_role.catalog.flow_loading import list_flows
from codex_multi_role.extensions.pages.report.flow_picture import LINE, PathTaken, draw, paths_taken
from codex_multi_role.flow.chart import chart_of
from codex_multi_role.flow.routing import End
from codex_multi_role.presentation.pieces import WorkPiece
from codex_multi_role.run_folder.events import RunEnded

FLOWS = [entry.name for entry in list_flows(None)]


def visits(*steps: str) -> list[WorkPiece]:
    return [WorkPiece(f"{step}.{steps[: number + 1].count(step)}", step) for number, step in enumerate(steps)]


def ended(outcome: str, exit_code: int) -> RunEnded:
    return RunEnded("ended", outcome, "", exit_code, {}, "/run")


def flow() -> FlowSpec:
    steps = [
        {"ask": "plan"},
        {"id": "try.1", "call": "inner"},
        {"check": "tests", "next": [{"when": "x", "to": "plan"}, {"when": "y", "to": "plan"}, {"end": "fine"}]},
    ]
    return FlowSpec.model_validate({"name": "outer", "steps": steps})


INNER = FlowSpec.model_validate(
    {"name": "inner", "steps": [{"ask": "a"}, {"id": "b", "ask": "b", "retry": {"attempts": 2}}]}
)


CHARTS = (chart_of(flow()), chart_of(INNER))


def test_visits_and_ways_are_counted_of_every_walk_of_a_flow() -> None:
    inside = [f"try.1.{walk}.0/{step}" for walk in (1, 2) for step in "ab"]
    went = visits("plan", "try.1", *inside[:2], "tests", "plan", "try.1", *inside[2:], "tests")
    paths = paths_taken(CHARTS, went, ended("fine", 0))
    outer, inner = paths["outer"], paths["inner"]
    assert (outer.walks, inner.walks) == (1, 2)
    assert outer.visits == {"plan": 2, "try.1": 2, "tests": 2}
    assert outer.ways == {
        ("plan", "try.1"): 2,
        ("try.1", "tests"): 2,
        ("tests", "plan"): 1,
        ("tests", End("fine", 0)): 1,
    }
    assert inner.ways == {("a", "b"): 2, ("b", End("success", 0)): 2}
    assert outer.stopped is None


def test_step_has_the_state_of_its_latest_visit() -> None:
    first, again, *_ = went = visits("plan", "plan", "tests")
    tones = {first.key: "bad", again.key: "busy"}
    path = paths_taken(CHARTS, went, None, lambda piece: tones.get(piece.key, "good"))["outer"]
    picture = draw(CHARTS[0], path)
    shown = [(box.count, box.tone) for box in picture.boxes if not box.is_end]
    assert shown == [(2, "busy"), (0, ""), (1, "good")]
    assert "plan 2 times, at work" in picture.in_words


@pytest.mark.parametrize(
    ("end", "tone", "how"), [(End("role_failed", 3), "bad", "ended"), (End("waiting_for_review", 4), "asks", "waits")]
)
def test_run_that_stopped_elsewhere_says_where(end: End, tone: str, how: str) -> None:
    """A run that waits for a person is not drawn like one that failed."""
    path = paths_taken(CHARTS, visits("plan"), ended(end.outcome, end.exit_code))["outer"]
    assert path.stopped == ("plan", end)
    picture = draw(CHARTS[0], path)
    tones = {words.text: box.tone for box in picture.boxes for words in box.words}
    assert tones[f"{end.outcome}, exit {end.exit_code}"] == tone
    assert [way.label.text for way in picture.ways if way.label.text.startswith("the run")] == [f"the run {how} here"]


def test_killed_run_has_no_end_and_removed_steps_are_skipped() -> None:
    """Steps that are not in the flow are not counted."""
    path = paths_taken(CHARTS, visits("plan", "gone", "x.1/a"), None)["outer"]
    assert (path.visits, path.stopped) == ({"plan": 1}, None)


def test_ways_to_one_place_are_one_with_what_they_are_taken_for() -> None:
    path = PathTaken(walks=1)
    path.ways["tests", "plan"] = 2
    back = [way for way in draw(CHARTS[0], path).ways if way.label.text.startswith("x")]
    assert [(way.label.text, way.count) for way in back] == [("x or y", 2)]
    assert back[0].title == "x or y → plan: taken 2 times"


def test_every_role_that_is_asked_is_named() -> None:
    every = FlowSpec.model_validate({"name": "team", "steps": [{"id": "team", "ask": "*"}]})
    picture = draw(chart_of(every), PathTaken(), ["planner", "builder"])
    assert [words.text for words in picture.boxes[0].words] == ["team", "ask every role", "planner, builder"]


@pytest.mark.parametrize("name", FLOWS)
def test_in_every_shipped_flow_all_has_its_place(name: str) -> None:
    for each in read_flows(name, None).values():
        picture = draw(chart_of(each), PathTaken())
        for one, other in itertools.combinations(picture.boxes, 2):
            beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y
        for box in picture.boxes:
            assert 0 <= box.x <= box.x + box.width <= picture.width
            assert 0 <= box.y <= box.y + box.height <= picture.height
            assert all(box.y < words.y < box.y + box.height for words in box.words)
        edge = picture.boxes[0].x + picture.boxes[0].width
        labels = sorted(way.label.y for way in picture.ways if way.label.text and way.label.x > edge)
        assert all(after - before >= LINE - 4 for before, after in itertools.pairwise(labels))


@pytest.mark.extensions
def test_shipped_flows_are_there() -> None:
    assert {"cycles", "testgen", "plan-solve", "research", "document"} <= set(FLOWS)
    assert Path(read_flows("cycles", None)["cycles"].source).exists()
