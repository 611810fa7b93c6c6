"""System D, research: every way of its diagrams, and what it promises besides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.research.citations import citations_in, count_words
from codex_multi_role.extensions.research.search_providers import NOT_SEARCHED
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions
from codex_multi_role.lifecycle.team_loading import load_catalog
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.steps.check_context import load_settings
from tests.support.research import (
    COLOUR,
    DOCUMENTS,
    NOTHING,
    OPENED,
    QUESTION,
    TOLL,
    ZEBRA,
    Researching,
    answer,
    planned,
    read_with,
    searching_here,
    serving,
)
from tests.support.teams import Record, TeamFolder, say

pytestmark = pytest.mark.usefixtures("scripted_codex")

FILES: Record = {"name": "files", "kind": "files"}
SERVER_ERROR: Record = {"fault": {"status": 400, "message": "no"}}


def endpoint(url: str, name: str, **more: object) -> Record:
    return {"name": name, "kind": "http", "endpoint": f"{url}/{name}?q={{query}}", **more}


@pytest.mark.long("extensions/research/test_research_flow.py::test_short_section_is_expanded_up_to_limit_and_reported")
def test_question_is_researched_verified_and_reported(tmp_path: Path) -> None:
    """With a contradiction, a single source, a copy, another language, a slow and a failing provider."""
    given = Researching(tmp_path, research_planner=[planned(OPENED, TOLL, COLOUR)])
    given.searches_apart = True
    with serving(broken=answer(status=500)) as there:
        there.pages["slow"] = there.hang
        given.search_with(endpoint(there.url, "slow", timeout_seconds=0.5), endpoint(there.url, "broken"), FILES)
        report = given.run(language="en", concurrency=3)
    assert (report.outcome, report.exit_code) == ("completed", 0), report
    assert given.states == "PENDING PLANNING EXECUTING VERIFYING SYNTHESIZING COMPLETED"
    assert not any(step["workspace"] for step in given.team.of_type("step_started"))  # nothing changes it
    found = given.data()
    sources = given.sources_found
    result = report.result or {}
    assert (result["title"], result["file"], "text" in result) == ("Report", "research.md", False)
    assert result["figures"]["sources"] == len(sources)
    assert [question["text"] for question in found["questions"]] == [OPENED, TOLL, COLOUR]

    opened = [source for source in sources.values() if source["address"] in ("chronicle.md", "copy.txt")]
    assert len(opened) == 1
    assert {opened[0]["address"], *opened[0]["duplicates"]} == {"chronicle.md", "copy.txt"}
    assert "bruecke.md" not in {source["address"] for source in sources.values()}
    assert {"address": "bruecke.md", "language": "de"} in found["searches"][0]["other_languages"]

    (discrepancy,) = found["discrepancies"]
    assert (discrepancy["question"], discrepancy["resolution_basis"]) == ("Q1", "credibility")
    assert {sources[name]["address"] for name in discrepancy["sources"]} >= {"guide.html", opened[0]["address"]}
    single = [fact for fact in found["facts"] if fact["question"] == "Q2"]
    assert [(fact["confidence"], fact["verified"], fact["notes"]) for fact in single] == [
        (0.56, False, "only one source")
    ] * 2
    assert [sources[name]["address"] for name in single[0]["sources"]] == ["ledger.txt"]
    assert [fact["confidence"] for fact in found["facts"] if fact["question"] == "Q1"] == [0.6]
    assert found["unanswered"] == ["Q3"]
    assert given.asked("fact_checker") == 1

    first = found["searches"][0]
    assert [(each["name"], each["status"]) for each in first["providers"]] == [
        ("slow", "timed out"),
        ("broken", "failed"),
        ("files", "ok"),
    ]
    assert [each["event"] for each in found["searches"]] == ["searched", "searched", "no_search_results"]

    assert set(citations_in(given.text)) <= set(sources)
    assert all(sources[name]["cited"] for name in citations_in(given.text.split("## Facts")[0]))
    sections = given.text.split("## ")
    assert 150 <= count_words(sections[1].removeprefix("Summary")) <= 250
    assert all(count_words(section) >= 300 for section in sections[2:4])
    assert "1887 or 1889" in given.text
    assert f"Nothing was found on: {COLOUR}" in given.text
    page = (report.folder / "research.html").read_text()
    assert 'href="#source-S1"' in page
    assert 'id="source-S1"' in page
    assert "1887 or 1889" in page


@pytest.mark.long
def test_new_topics_are_followed_to_preset_depth(tmp_path: Path) -> None:
    """Topics that a source leads to are followed as deep as the preset allows. No topic is searched twice."""
    again = f"['{TOLL}', 'The mill', 'The Mill!']"
    deeper = f"""['Boats'] if '"topic": "The mill"' in prompt else {again}"""
    plan = planned(OPENED, TOLL, COLOUR)
    given = Researching(tmp_path, research_planner=[plan], researcher=[read_with(topics=deeper)])
    assert given.run().outcome == "completed"
    found = given.data()
    assert {(each["topic"], each["depth"]) for each in found["searches"]} == {
        (OPENED, 0), (TOLL, 0), (COLOUR, 0), ("The mill", 1)
    }  # fmt: skip
    skipped = {(each["topic"], each["depth"], each["reason"]) for each in found["skipped"]}
    assert (TOLL, 1, "already researched") in skipped
    assert ("The Mill!", 1, "already researched") in skipped
    assert ("Boats", 2, "beyond the maximum depth") in skipped
    assert {finding["depth"] for finding in found["findings"]} == {0, 1}
    mill = [finding for finding in found["findings"] if finding["topic"] == "The mill"]
    assert {finding["question"] for finding in mill} == {"Q1"}
    pairs = [(finding["question"], finding["source"]) for finding in found["findings"]]
    assert len(pairs) == len(set(pairs))


@pytest.mark.long
def test_questions_are_researched_by_priority_and_excess_is_cut(tmp_path: Path) -> None:
    texts = [f"Question {word} of the bridge" for word in ("one", "two", "three", "four", "five", "six")]
    order = [6, 2, "high", "low", 4, 3]
    questions = [{"text": text, "priority": priority} for text, priority in zip(texts, order, strict=True)]
    plan = {"json": {"sub_questions": questions, "estimated_time_seconds": 60}}
    given = Researching(tmp_path, research_planner=[plan], researcher=[NOTHING])
    report = given.run(results=1)
    assert (report.outcome, report.exit_code) == ("nothing_found", 1)
    assert given.states == "PENDING PLANNING EXECUTING FAILED"
    numbers = ["three", "two", "four", "six", "five"]
    assert [each["topic"].split()[1] for each in given.data()["searches"]] == numbers
    assert given.data()["cut_questions"] == [texts[0]]
    assert not (report.folder / "research.md").exists()
    assert given.sources_found["S1"]["cited"] is False


@pytest.mark.long
def test_plan_of_too_few_questions_is_asked_for_again(tmp_path: Path) -> None:
    few = planned(OPENED, "WHEN was the bridge opened")
    plans = [few, planned(OPENED, COLOUR, ZEBRA)]
    given = Researching(tmp_path, {"mill.md": DOCUMENTS["mill.md"]}, research_planner=plans, researcher=[NOTHING])
    assert given.run().outcome == "nothing_found"
    assert given.handed("research_planner", 2)["problems"] == ["1 different questions, 3 to 5 are required"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"goal": "too short"}, "the goal has 9 characters, but 10 to 500 are required"),
        ({"goal": "long " * 101}, "the goal has 504 characters, but 10 to 500 are required"),
        ({"inputs": {"depth": "deepest"}}, "must be one of quick, standard, comprehensive, not 'deepest'"),
        ({"inputs": {"results": "0"}}, "must be at least 1 and at most 5"),
    ],
)
def test_invalid_research_input_is_refused_before_start(tmp_path: Path, changes: Record, problem: str) -> None:
    team = Researching(tmp_path).team
    with pytest.raises(UsageError, match=problem):
        team.run(**{"flow": "research", "goal": QUESTION, **changes})
    assert not team.runs.exists()


@pytest.mark.parametrize("place", ["roles", "config", "."])
def test_search_yaml_needs_no_catalog_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """With the shipped roles, that of ``roles/`` applies; one elsewhere, or beside a catalog not in use, does not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "search.yaml").write_text("version: 1\nproviders: [{name: web, kind: codex-web}]\n")
    names = [each.name for each in load_settings("search", load_catalog(None).source.parent).enabled]
    assert names == (["web"] if place == "roles" else ["files"])
    (tmp_path / "config/catalog.yaml").parent.mkdir(exist_ok=True)
    (tmp_path / "config/catalog.yaml").write_text("version: 1\nroles: [{name: a, prompt_text: A}]\n")
    names = [each.name for each in load_settings("search", load_catalog(Path("config")).source.parent).enabled]
    assert names == (["web"] if place == "config" else ["files"])


def test_runs_copy_has_the_projects_search_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roles").mkdir()
    written = "version: 1\nproviders: [{name: mine, kind: files, folder: .}]\n"
    (tmp_path / "roles/search.yaml").write_text(written)
    options = RunOptions(goal="Which rule is the thing made by?", flow="research", playbook="research")
    folder = RunFolder.create(tmp_path / "runs")
    kept = keep_definitions(load_definitions(options), folder)
    assert (folder.catalog_path / kept).with_name("search.yaml").read_text() == written


def test_mistake_in_search_yaml_is_found_before_anything_starts(tmp_path: Path) -> None:
    given = Researching(tmp_path)
    given.search_with({"name": "files", "kind": "files", "foldr": "x"})
    with pytest.raises(
        UsageError, match=r'search\.yaml:\d+:\d+: providers\[0\]: unknown key "foldr"; did you mean "folder"'
    ):
        given.run()
    assert not given.team.runs.exists()


def test_without_sources_no_model_is_asked(tmp_path: Path) -> None:
    given = Researching(tmp_path)
    report = given.run(sources="")
    assert report.exit_code == 2
    assert "nothing to search" in report.reason
    assert given.team.of_type("turn_started") == []
    with pytest.raises(UsageError, match="the input sources is not in the workspace"):
        given.run(sources="nowhere")


@pytest.mark.long
def test_search_without_provider_fails_and_resume_retries(tmp_path: Path) -> None:
    """Every provider fails. The run reports the reason of each one, and resume searches again."""
    given = Researching(tmp_path)
    entry = {"title": "T", "url": "https://town.example/bridge", "snippet": "The bridge was opened in 1887."}
    with serving(broken=answer(status=500), other=answer(status=503)) as there:
        given.search_with(endpoint(there.url, "broken"), endpoint(there.url, "other"))
        report = given.run()
        assert (report.outcome, report.exit_code) == ("check_failed", 3)
        assert given.states == "PENDING PLANNING EXECUTING FAILED"
        assert "no search provider answered: broken: HTTP status 500; other: HTTP status 503" in report.reason
        there.pages["other"] = answer(entry)
        (tmp_path / "roles/search.yaml").unlink()  # the run keeps its own
        with searching_here():
            given.report = given.team.resume()
    assert given.report.outcome == "completed"
    assert given.states.endswith("FAILED EXECUTING VERIFYING SYNTHESIZING COMPLETED")
    assert given.asked("research_planner") == 0
    assert [source["origin"] for source in given.sources_found.values()] == ["town.example"]


def section(body: str) -> Record:
    """A synthesizer whose summary is right and whose every section has this body."""
    summary = {"json": {"summary": "word " * 200 + "[cite:S1]"}}
    return {"choose": [{"when": "'\"body\"' not in prompt", **summary}, {"json": {"title": "T", "body": body}}]}


@pytest.fixture(scope="module")
def flawed(tmp_path_factory: pytest.TempPathFactory) -> Researching:
    """A run of which one source is not read, and whose section is too short and cites a text that is not a source."""
    fails: Record = {"choose": [{"when": "'guide.html' in prompt", **SERVER_ERROR}, read_with()]}
    body = (
        "{{ 'More words. ' * (100 if '\"draft\": \"\"' in prompt else 125) }}[cite:S1] [cite:S99] [cite:S1, S98] [cite:"
    )
    given = Researching(tmp_path_factory.mktemp("flawed"), researcher=[fails], synthesizer=[section(body)])
    report = given.run()
    assert (report.outcome, report.exit_code) == ("citations_unresolved", 1)
    return given


@pytest.mark.long
def test_unreadable_source_is_reported_and_others_count(flawed: Researching) -> None:
    found = flawed.data()
    guide = next(name for name, source in flawed.sources_found.items() if source["address"] == "guide.html")
    assert {each["source"] for each in found["failed"]} == {guide}
    assert all("bad_request" in each["reason"] for each in found["failed"])
    assert found["findings"]
    assert guide not in {finding["source"] for finding in found["findings"]}
    assert f"{guide} was not read on {OPENED}" in flawed.text


@pytest.mark.real
@pytest.mark.sample("research")
def test_short_section_is_expanded_up_to_limit_and_reported(flawed: Researching) -> None:
    """The shortfall is in the report. A citation of an unknown source is also sent back to be fixed and never appears
    in the report.
    """
    assert flawed.asked("synthesizer") == 1 + 3
    assert flawed.data()["shortfalls"][0] == "T: it has 250 words, at least 300 are required"
    assert "T: it has 250 words, at least 300 are required" in flawed.text
    assert {each["id"] for each in flawed.data()["removed_citations"]} == {"S99", "S98", "(nothing)"}
    assert set(citations_in(flawed.text)) <= set(flawed.sources_found)
    assert "a citation of S99, which is not a source, was removed" in flawed.text
    assert "S99" not in (flawed.report.folder / "research.html").read_text().split("What is missing")[0]


@pytest.mark.long
def test_summary_of_wrong_length_is_rewritten(tmp_path: Path) -> None:
    """A section that is too short does not fail the run on its own."""
    long = {"json": {"summary": "word " * 300}}
    mended = {"json": {"summary": "word " * 200}}
    body = {"json": {"title": "T", "body": "word " * 290}}
    turns = [{"choose": [{"when": "'\"body\"' in prompt", **body}, {"when": "'300 words' in prompt", **mended}, long]}]
    given = Researching(tmp_path, synthesizer=turns)
    report = given.run()
    assert (report.outcome, report.exit_code) == ("completed", 0)
    assert given.data()["shortfalls"] == ["T: it has 290 words, at least 300 are required"]
    assert given.asked("synthesizer") == 2 + 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "state"),
    [
        pytest.param("research_planner", "PLANNING", marks=pytest.mark.long),
        ("fact_checker", "VERIFYING"),
        pytest.param("synthesizer", "SYNTHESIZING", marks=pytest.mark.long),
    ],
)
def test_role_that_fails_for_good_fails_the_run(tmp_path: Path, role: str, state: str) -> None:
    documents = {name: DOCUMENTS[name] for name in ("chronicle.md", "guide.html")}
    given = Researching(tmp_path, documents, **{role: [SERVER_ERROR]})
    report = given.run()
    assert (report.outcome, report.exit_code) == ("bad_request", 3)
    assert role in report.reason
    assert given.states.split()[-2:] == [state, "FAILED"]


@pytest.mark.long
def test_roles_own_web_search_is_a_provider_like_the_others(tmp_path: Path) -> None:
    page = {
        "title": "News",
        "url": "https://news.example/1",
        "snippet": "The bridge was opened in 1887.",
        "date": "2001",
    }
    lie = {"title": "", "url": "javascript:alert(1)", "snippet": "x", "date": ""}
    looks = {"json": {"results": [page, lie]}, "web_search": ["{{ prompt | length }} bridges"]}
    searches = [{"when": "'zebras' in prompt", **SERVER_ERROR}, looks]
    given = Researching(tmp_path, web_searcher=[{"choose": searches}])
    given.search_with(FILES, {"name": "web", "kind": "codex-web"})
    given.config = ("web_search=live",)
    assert given.run(results=1).outcome == "completed"
    found = given.data()
    assert "news.example" in {source["origin"] for source in given.sources_found.values()}
    assert "javascript" not in given.text
    web = {each["topic"]: each["providers"][-1] for each in found["searches"]}
    assert (web[OPENED]["name"], web[OPENED]["status"], web[OPENED]["found"]) == ("web", "ok", 1)
    assert web[ZEBRA]["status"] == "failed"
    assert "bad_request" in web[ZEBRA]["reason"]


def test_pages_that_were_named_without_a_search_do_not_count(tmp_path: Path) -> None:
    invented = {"title": "News", "url": "https://made-up.example/1", "snippet": "It was opened in 1700.", "date": ""}
    given = Researching(tmp_path, web_searcher=[{"json": {"results": [invented]}}])
    given.search_with(FILES, {"name": "web", "kind": "codex-web"})
    given.config = ("web_search=live",)
    assert given.run(results=1).outcome == "completed"
    assert "made-up" not in json.dumps(given.sources_found) + given.text
    assert {each["providers"][-1]["reason"] for each in given.data()["searches"]} == {NOT_SEARCHED}
    given.search_with({"name": "web", "kind": "codex-web"})
    report = given.run(results=1, sources="")
    assert report.exit_code == 3
    assert NOT_SEARCHED in report.reason


def test_web_search_without_capable_role_is_refused_before_turn(tmp_path: Path) -> None:
    given = Researching(tmp_path)
    given.search_with({"name": "web", "kind": "codex-web"})
    report = given.run(sources="")
    assert (report.exit_code, report.outcome) == (2, "wrong_usage")
    assert "the role web_searcher has no web search" in report.reason
    assert given.asked("research_planner") == 0


@pytest.mark.long
def test_failed_or_malformed_model_reply_is_requested_again(tmp_path: Path) -> None:
    limited = {"fault": {"code": "rate_limit_exceeded", "message": "Rate limit reached, try again in 10ms."}}
    shapeless = {"json": {"extracted_facts": "one", "confidence": 2, "new_topics_to_research": []}}
    mended = {"json": {"extracted_facts": ["It was opened."], "confidence": 0.8, "new_topics_to_research": []}}
    reads = {"attempts": [limited, {"fault": {"drop": True}}, shapeless], "repairs": [mended]}
    given = Researching(tmp_path, {"chronicle.md": DOCUMENTS["chronicle.md"]}, researcher=[reads])
    assert given.run().outcome == "completed"
    ends = [event["outcome"] for event in given.team.of_type("turn_ended") if event["role"] == "researcher"]
    assert ends == ["rate_limited", "provider_error", "invalid_reply", "completed"]
    assert [fact["confidence"] for fact in given.data()["facts"]] == [0.56]


def test_role_cannot_claim_to_have_searched_the_web(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say("found", web_searches=3)], "two": [say()]})
    prompt = (team.run().folder / "two/turn_001/prompt.txt").read_text()
    assert ("found" in prompt, "web_searches" in prompt) == (True, False)
