"""System D, research: every way of its diagrams, and what it promises besides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.research.citations import citations_in
from codex_multi_role.extensions.research.search_providers import NOT_SEARCHED
from codex_multi_role.lifecycle.definitions import load_definitions
from codex_multi_role.lifecycle.kept_definitions import keep_definitions
from codex_multi_role.lifecycle.team_loading import load_catalog
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.steps.check_context import load_settings
from tests.support.research import (
    DOCUMENTS,
    OPENED,
    QUESTION,
    ZEBRA,
    Researching,
    read_with,
)
from tests.support.teams import Record, TeamFolder, say

pytestmark = pytest.mark.usefixtures("scripted_codex")

FILES: Record = {"name": "files", "kind": "files"}
SERVER_ERROR: Record = {"fault": {"status": 400, "message": "no"}}


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
    documents = {name: DOCUMENTS[name] for name in ("chronicle.md", "guide.html")}
    given = Researching(tmp_path_factory.mktemp("flawed"), documents, researcher=[fails], synthesizer=[section(body)])
    report = given.run()
    assert (report.outcome, report.exit_code) == ("citations_unresolved", 1)
    return given


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
    guide = next(name for name, source in flawed.sources_found.items() if source["address"] == "guide.html")
    assert {each["source"] for each in flawed.data()["failed"]} == {guide}
    assert guide not in {finding["source"] for finding in flawed.data()["findings"]}
    assert f"{guide} was not read on {OPENED}" in flawed.text
    assert "S99" not in (flawed.report.folder / "research.html").read_text().split("What is missing")[0]


@pytest.mark.long
def test_roles_own_web_search_is_a_provider_like_the_others(tmp_path: Path) -> None:
    """Only here a role searches the web itself."""
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


def test_role_cannot_claim_to_have_searched_the_web(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say("found", web_searches=3)], "two": [say()]})
    prompt = (team.run().folder / "two/turn_001/prompt.txt").read_text()
    assert ("found" in prompt, "web_searches" in prompt) == (True, False)
