from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from codex_multi_role.checks import RunFacts
from codex_multi_role.errors import CheckFailed, UsageError
from codex_multi_role.extensions.research.search import combined, search, search_ready
from codex_multi_role.extensions.research.search_settings import SearchFile
from codex_multi_role.extensions.research.searching import files_search
from codex_multi_role.extensions.research.searching.addresses import place
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.shipped import packaged_roles
from codex_multi_role.reading.sketches import nearly_same, sketch
from codex_multi_role.steps.check_context import load_settings
from tests.support.checks import MakeContext
from tests.support.research import answer, pdf, searching_here, serving
from tests.support.teams import Record
from tests.support.workspaces import write_files

BRIDGE = "The old bridge of the town was built in 1887 by the engineer Hanna Berg, out of stone and iron.\n"
RIVER = "The river below rises every spring, and in some years it floods the meadows on both of its banks.\n"
GERMAN = "Die alte Brücke der Stadt wurde im Jahr 1887 gebaut, und zwar aus Stein und aus Eisen, von einer Frau.\n"
FOLDER: Record = {"name": "files", "kind": "files"}


class Searching:
    """The checks on a folder of documents, with these providers."""

    def __init__(self, make_context: MakeContext, folder: Path) -> None:
        self.make_context = make_context
        self.folder = folder
        self.sources = folder / "sources"
        self.sources.mkdir()
        (folder / "run").mkdir()

    def write(self, **documents: str | bytes) -> None:
        named = {name.replace("__", "/").replace("_", "."): text for name, text in documents.items()}
        write_files(self.sources, named)

    def __call__(self, query: str, *providers: Record, check: Any = search, **options: object) -> Json:
        own = SearchFile.model_validate({"version": 1, "providers": providers or [FOLDER]})
        given: Json = {"query": query} if query else {}
        context = self.make_context(
            {}, environment={"KEY": "s3cret"}, **{**given, "folder": str(self.sources), **options}
        )
        facts = RunFacts("r1", "research", "", self.folder / "run", "search.1", [], lambda role: role == "reporter")
        found: Json = check(replace(context, settings=lambda: own, run=lambda: facts))
        return found


@pytest.fixture
def searching_apart(make_context: MakeContext, tmp_path: Path) -> Searching:
    """With a process for each provider, as with users."""
    return Searching(make_context, tmp_path)


@pytest.fixture
def searching(searching_apart: Searching) -> Iterator[Searching]:
    with searching_here():
        yield searching_apart


def addresses(found: Json) -> list[str]:
    return [result["address"] for result in found["results"]]


def http(host: str, **more: object) -> Record:
    return {"name": "endpoint", "kind": "http", "endpoint": f"{host}/q?q={{query}}&n={{count}}", **more}


def entry(name: str, text: str, **more: object) -> Record:
    return {"title": name, "url": f"https://{name}.example/page", "snippet": text, **more}


@pytest.mark.real
def test_documents_of_every_kind_are_read_with_metadata(searching_apart: Searching) -> None:
    """Title and date come from the document itself: front matter, HTML head or PDF metadata."""
    searching_apart.write(
        a_md=f"---\ntitle: The Bridge\ndate: 2020-05-01\n---\n# Heading\n{BRIDGE}",
        b_txt=f"A bridge.\n{RIVER}",
        c_html="<html><head><title>A bridge page</title><meta name='date' content='2019-02-03T10:00'><script>bridge()"
        f"</script></head><body><p>An <b>old</b> bridge &amp; more.</p><p>{RIVER}</p></body></html>",
        d_pdf=pdf("The bridge was repaired."),
    )
    found = searching_apart("who built the bridge", results=9)
    told = {result["address"]: result for result in found["results"]}
    assert found["status"] == "found"
    assert sorted(told) == ["a.md", "b.txt", "c.html", "d.pdf"]
    assert (told["a.md"]["title"], told["a.md"]["date"]) == ("The Bridge", "2020-05-01")
    assert (told["c.html"]["title"], told["c.html"]["date"]) == ("A bridge page", "2019-02-03")
    assert told["c.html"]["text"] == f"An old bridge & more.\n{RIVER.strip()}"
    assert (told["d.pdf"]["title"], told["d.pdf"]["date"]) == ("On bridges", "2021-03-04")
    assert "The bridge was repaired." in told["d.pdf"]["text"]
    assert addresses(found)[0] == "a.md"


PAGE = f"""<!DOCTYPE html><html><head><title>Guide</title></head><body>
<header><nav><ul><li><a href="/">Home</a></li><li><a href="/mills">All our mills</a></li></ul></nav></header>
<div class="cookie-banner">We use cookies. <button>Accept</button></div>
<main><h1>The bridge</h1><p>{BRIDGE}</p><ul><li>It has three arches.</li></ul>
<table><tr><td>Length</td><td>40 m</td></tr></table><pre>arch(3)</pre></main>
<aside>Related: <a href="/ten">Ten best mills</a></aside><footer>Imprint and privacy policy</footer></body></html>"""


def test_page_is_read_without_its_navigation(searching: Searching) -> None:
    searching.write(a_html=PAGE, b_html="<nav><a href=/>Bridges</a></nav>")
    with serving(
        q=answer(entry("one", PAGE.replace(BRIDGE, f"{RIVER} Hanna Berg, 1887.")), entry("two", "A <b> bridge"))
    ) as there:
        found = searching("bridge 1887", FOLDER, http(there.url), results=5)
    texts = {result["address"]: result["text"] for result in found["results"]}
    for text in (texts["a.html"], texts["https://one.example/page"]):
        for kept in ("Hanna Berg", "It has three arches.", "40 m", "arch(3)"):
            assert kept in text
        for left_out in ("Home", "mills", "cookies", "Imprint"):
            assert left_out not in text
    assert texts["b.html"] == "Bridges"  # nothing else is there
    assert texts["https://two.example/page"] == "A <b> bridge"


def test_many_pages_are_read_with_their_navigation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding their main text would take longer than a search may."""
    monkeypatch.setattr(files_search, "MOST_PAGE_BYTES", len(PAGE) + 10)
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text(PAGE)
    found = files_search.search(tmp_path, tmp_path / "index", "bridge", 5, 8_000)
    assert ["mills" in result["text"] for result in found["results"]].count(True) == 1
    assert found["notes"] == [f"HTML pages beyond {len(PAGE) + 10} bytes were read with their navigation"]


def test_text_that_was_shortened_says_so(searching: Searching) -> None:
    long = BRIDGE * 400
    searching.write(a_md=long, b_md=f"A bridge. {RIVER}")
    with serving(q=answer(entry("one", long.replace("bridge", "dam")))) as there:
        found = searching("bridge dam", FOLDER, http(there.url), results=5)
    told = {result["address"]: (len(result["text"]), result["shortened"]) for result in found["results"]}
    assert told["b.md"][1] == ""
    (shown, said) = told["a.md"]
    assert 4_000 < shown <= 8_000
    assert said == f"{shown} of {len(long.strip())} characters"
    (shown, said) = told["https://one.example/page"]
    assert said == f"8000 of {len(long.replace('bridge', 'dam'))} characters"


def test_document_that_is_read_in_part_says_so(searching: Searching) -> None:
    searching.write(a_md=BRIDGE * 12_000)
    (result,) = searching("bridge")["results"]
    assert result["shortened"] == f"{len(result['text'])} of more than 1000000 characters"


def test_unreadable_documents_are_reported(searching: Searching) -> None:
    """Binary, broken, empty and oversized files are listed with a reason. Files of other kinds are ignored."""
    searching.write(
        a_md=BRIDGE,
        empty_md="",
        binary_txt=b"a\x00b",
        broken_pdf=b"%PDF-1.4 bridge",
        code_py=BRIDGE,
        __hidden_md=BRIDGE,
    )
    (searching.sources / "large.txt").touch()
    os.truncate(searching.sources / "large.txt", 11 * 1024 * 1024)
    (searching.sources / "link.md").symlink_to(searching.folder)
    found = searching("", check=search_ready)
    assert (found["documents"], found["providers"]) == (1, ["files"])
    told = {each["address"]: each["reason"] for each in found["unread"]}
    assert sorted(told) == ["binary.txt", "broken.pdf", "empty.md", "large.txt"]
    assert "cannot be read as PDF" in told["broken.pdf"]
    assert "larger than" in told["large.txt"]
    assert addresses(searching("bridge")) == ["a.md"]


def test_changed_file_is_reread_and_deleted_file_is_forgotten(searching: Searching) -> None:
    searching.write(a_md=BRIDGE, b_md=RIVER)
    assert addresses(searching("bridge")) == ["a.md"]
    searching.write(b_md=f"A bridge again. {RIVER}")
    (searching.sources / "a.md").unlink()
    assert addresses(searching("bridge")) == ["b.md"]


def test_each_folder_has_an_index_of_its_own(searching: Searching, tmp_path: Path) -> None:
    searching.write(a_md=BRIDGE)
    write_files(tmp_path, {"other/b.md": BRIDGE})
    assert addresses(searching("bridge")) == ["a.md"]
    assert addresses(searching("bridge", folder=str(tmp_path / "other"))) == ["b.md"]
    assert len(list((tmp_path / "run").glob("files.*.sqlite"))) == 2


def test_long_document_returns_its_relevant_passages(searching: Searching) -> None:
    filler = "Nothing of interest stands in this sentence at all. " * 400
    searching.write(a_md=f"{filler}\n\n{BRIDGE}\n\n{filler}")
    (result,) = searching("Hanna Berg engineer")["results"]
    assert "Hanna Berg" in result["text"]
    assert len(result["text"]) <= 8_000


def test_one_address_and_nearly_the_same_text_are_one_result(searching: Searching) -> None:
    searching.write(a_md=BRIDGE * 3 + RIVER, b_md=BRIDGE * 3 + RIVER + "The end.")
    same = entry("copy", BRIDGE * 3 + RIVER)
    with serving(
        q=answer(
            entry("one", RIVER), {**entry("one", "bridge, told anew"), "url": "http://www.one.example/page/"}, same
        )
    ) as there:
        found = searching("bridge", FOLDER, http(there.url))
    assert addresses(found) == ["a.md", "https://one.example/page"]
    assert found["results"][0]["duplicates"] == ["b.md", "https://copy.example/page"]


def test_only_those_in_the_language_asked_for_are_kept(searching: Searching) -> None:
    searching.write(a_md=BRIDGE * 2, b_md=GERMAN * 2, c_md="1887 bridge")
    found = searching("bridge 1887", language="en")
    assert sorted((each["address"], each["language"]) for each in found["results"]) == [("a.md", "en"), ("c.md", "")]
    assert found["other_languages"] == [{"address": "b.md", "language": "de"}]


def test_others_take_no_place_of_those_in_the_language_asked_for(searching: Searching) -> None:
    """However many there are in front of them."""
    searching.write(**{f"d{number}_md": f"Brücke 1887, {number}. {GERMAN}" for number in range(60)}, e_md=BRIDGE)
    german = [entry(f"g{number}", f"Nummer {number}. {GERMAN}") for number in range(40)]
    with serving(q=answer(*german, entry("english", RIVER))) as there:
        found = searching("1887 Brücke Stein Eisen bridge", FOLDER, http(there.url), language="en", results=2)
    assert addresses(found) == ["e.md", "https://english.example/page"]
    assert 20 < len(found["other_languages"]) < 100


@pytest.mark.real
def test_providers_are_queried_in_parallel_with_failures_shown(searching_apart: Searching) -> None:
    """Failures are reported next to the results of the providers that answered."""
    searching_apart.write(a_md=BRIDGE)
    with serving(q=answer(entry("one", "A bridge.", published="2020"))) as there:
        there.pages |= {"slow": there.hang, "bad": answer(status=503), "odd": lambda: (200, b"<html>")}
        there.pages["away"] = lambda: (302, f"{there.url}/q".encode())
        providers = [
            {**http(there.url), "name": name, "endpoint": f"{there.url}/{name}?q={{query}}", **more}
            for name, more in {"slow": {"timeout_seconds": 1}, "bad": {}, "odd": {}, "away": {}}.items()
        ]
        off = {**http("https://nowhere.example", enabled=False), "name": "off"}
        found = searching_apart("bridge", *providers, off, FOLDER, http(there.url, date="published"))
    assert [(each["name"], each["status"], each["reason"].split(":")[0]) for each in found["providers"]] == [
        ("slow", "timed out", "no answer within 1 s"),
        ("bad", "failed", "HTTP status 503"),
        ("odd", "failed", "its answer is not valid JSON"),
        ("away", "failed", "HTTP status 302"),
        ("off", "disabled", ""),
        ("files", "ok", ""),
        ("endpoint", "ok", ""),
    ]
    assert addresses(found) == ["a.md", "https://one.example/page"]
    assert found["results"][1]["date"] == "2020"


def test_where_no_provider_answers_it_fails_with_all_reasons(searching: Searching) -> None:
    with serving(q=answer(status=500)) as there:
        gone = {**FOLDER, "name": "gone"}
        with pytest.raises(CheckFailed, match=r"endpoint: HTTP status 500; gone: folder not found: .*/nowhere"):
            searching("bridge", http(there.url), gone, folder=str(searching.folder / "nowhere"))


@pytest.mark.real
def test_endpoint_receives_query_and_secret_and_maps_results(searching_apart: Searching) -> None:
    """The configuration names the fields of the response that hold the results, titles, addresses and snippets."""
    items = b'[{"n": "T", "u": "https://x.example", "parts": ["a bridge", "b"]}, {"u": "file:///etc"}, 7]'
    data = b'{"web": {"items": %s}}' % items
    with serving(q=lambda: (200, data), p=lambda: (200, data)) as there:
        keys = {"X-Key": "KEY", "Authorization": "Bearer KEY"}
        how = {"results": "web.items", "title": "n", "url": "u", "snippet": "parts", "secrets": keys}
        post = {**http(there.url, **how), "name": "post", "endpoint": f"{there.url}/p"}
        post |= {"body": {"query": "about {query}", "n": "{count}", "all": [True]}, "headers": {"X-More": "yes"}}
        found = searching_apart("a bridge & more", http(there.url, **how), post, results=3)
    (get, sent) = sorted(there.asked, key=lambda each: each[0], reverse=True)
    assert get[0] == "/q?q=a%20bridge%20%26%20more&n=6"
    assert (sent[1]["X-Key"], sent[1]["X-More"]) == ("s3cret", "yes")
    assert sent[1]["Authorization"] == "Bearer s3cret"
    assert sent[2] == b'{"query": "about a bridge & more", "n": 6, "all": [true]}'
    (result,) = found["results"]
    assert (result["title"], result["address"], result["text"]) == ("T", "https://x.example", "a bridge\nb")
    assert found["providers"][0]["notes"] == ["2 results without an address or a text were left out"]


def test_codex_web_is_left_to_the_flow(searching: Searching) -> None:
    web = {"name": "web", "kind": "codex-web"}
    found = searching("bridge", web)
    assert (found["status"], found["ask_web"], found["providers"][0]["status"]) == ("to be asked", True, "to be asked")
    searching.write(a_md=BRIDGE)
    found = searching("bridge", web, FOLDER)
    assert (found["status"], found["ask_web"]) == ("found", True)


def test_codex_web_is_ready_only_if_its_role_can_search(searching: Searching) -> None:
    web = {"name": "web", "kind": "codex-web"}
    with pytest.raises(UsageError, match="web cannot be used: the role web_searcher has no web search") as error:
        searching("", web, check=search_ready)
    assert "codex_config: {web_search: live} in roles/web_searcher.yaml" in (error.value.hint or "")
    assert searching("", web, check=search_ready, web_role="reporter")["providers"] == ["web"]


@pytest.mark.parametrize(
    ("providers", "options", "problem"),
    [
        ([FOLDER], {"folder": ""}, "nothing to search"),
        ([FOLDER], {"folder": "nowhere"}, "the search provider files cannot be used: folder not found: "),
        ([FOLDER], {}, "there are no documents to search; empty.md: it contains no text"),
        ([{**FOLDER, "enabled": False}], {}, "nothing to search"),
        ([http("http://127.0.0.1:1", secrets={"A": "GONE"})], {}, "cannot be used: missing environment variable GONE"),
        ([http("http://127.0.0.1:1", secrets={"A": "Bearer GONE"})], {}, "missing environment variable GONE"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_found_out_before(
    searching: Searching, providers: list[Record], options: Record, problem: str
) -> None:
    searching.write(empty_md="")
    with pytest.raises(UsageError, match=problem):
        searching("", *providers, check=search_ready, **options)


@pytest.mark.parametrize(
    ("provider", "problem"),
    [
        ({**FOLDER, "endpoint": "https://x.example"}, "endpoint is not an option that files accepts"),
        (http("ftp://x.example"), "endpoint must be an address that starts with http"),
        ({"name": "e", "kind": "http", "endpoint": "https://x.example"}, "has a place for {query}"),
        (http("https://x.example", results="a..b"), "results is not a JMESPath expression"),
        (http("https://x.example", timeout_seconds=121), "less than or equal to 120"),
        ({**FOLDER, "kind": "ftp"}, "'files', 'http' or 'codex-web'"),
        (http("https://x.example", secrets={"A": "no name"}), "should match pattern"),
        (http("https://x.example", secrets={"A": "Bearer "}), "should match pattern"),
    ],
)
def test_mistake_in_search_yaml_is_named(provider: Record, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        SearchFile.model_validate({"version": 1, "providers": [provider]})


def test_packaged_search_yaml_searches_the_folder_that_is_named(tmp_path: Path) -> None:
    assert [each.name for each in load_settings("search", tmp_path).enabled] == ["files"]
    assert load_settings("search", packaged_roles()) == load_settings("search", tmp_path)


RESULTS = st.lists(
    st.fixed_dictionaries(
        {
            "address": st.sampled_from(["a.md", "https://a.example/x", "HTTPS://A.example:443/x/", "http://[", ""])
            | st.text(max_size=20),
            "text": st.text(max_size=60),
        }
    ),
    max_size=8,
)


@settings(max_examples=settings().max_examples // 2)
@given(RESULTS)
def test_combining_loses_no_source_and_leaves_none_twice(found: list[Json]) -> None:
    found = [{**each, "sketch": sketch(each["text"])} for each in found]
    kept = combined(found)
    assert combined(kept) == [{**each, "duplicates": []} for each in kept]
    told = {place(each) for each in kept} | {place({"address": other}) for each in kept for other in each["duplicates"]}
    assert told == {place(each) for each in found}
    for index, one in enumerate(kept):
        for other in kept[index + 1 :]:
            assert not nearly_same(one["sketch"], other["sketch"])


@settings(max_examples=settings().max_examples // 2)
@given(st.text(max_size=200))
def test_text_is_nearly_itself_whatever_it_is(text: str) -> None:
    assert nearly_same(sketch(text), sketch(f"  {text}"))
