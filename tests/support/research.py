"""Runs of the flow research on the real binary, and what they search: documents, and an endpoint on the loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role import RunReport, run
from codex_multi_role.extensions.research.searching import files_search, http_search
from codex_multi_role.playbook.loopback import LoopbackHandler, LoopbackServer
from codex_multi_role.reading.shipped import PLAYBOOKS, list_definitions
from codex_multi_role.workspace import CommandResult
from tests.support.teams import Record, TeamFolder, read


def pdf(text: str) -> bytes:
    """A document of one page with ``text``, which a reader repairs where its table of contents is missing."""
    stream = f"BT /F1 12 Tf 40 700 Td ({text}) Tj ET"
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Title (On bridges) /CreationDate (D:20210304120000Z) >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{part}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    start = len(data)
    data += f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}".encode()
    return data + f"trailer << /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()


class Endpoint:
    """Answers each path as ``pages`` says, and remembers what was ``asked``: path, headers and body."""

    def __init__(self, pages: dict[str, Callable[[], tuple[int, bytes]]], server: LoopbackServer) -> None:
        self.pages = pages
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.url = server.address
        self._over = server.stopping

    def hang(self) -> tuple[int, bytes]:
        """Until the test is over."""
        self._over.wait(60)
        return 200, b"{}"


def answer(*entries: Record, status: int = 200) -> Callable[[], tuple[int, bytes]]:
    """A page with these search results."""
    return lambda: (status, json.dumps({"results": list(entries)}).encode())


@contextmanager
def serving(**pages: Callable[[], tuple[int, bytes]]) -> Iterator[Endpoint]:
    """An endpoint with a page for each path, by its name. It ends with the block."""

    class Handler(LoopbackHandler):
        def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            endpoint.asked.append((self.path, dict(self.headers), body))
            status, data = endpoint.pages[self.path.split("?")[0].strip("/")]()
            self.answer(status, data, {"Location": data.decode()} if status == 302 else {})

        do_POST = do_GET  # noqa: N815

    with LoopbackServer("endpoint", Handler) as server:
        endpoint = Endpoint(pages, server)
        yield endpoint


@contextmanager
def searching_here() -> Iterator[None]:
    """Providers answer in this process: one of its own takes most of its time for its imports."""

    def here(argv: Sequence[str], *_: object, **__: object) -> CommandResult:
        arguments = json.loads(argv[-1])
        try:
            if "folder" in arguments:
                folder, index = (Path(arguments.pop(name)) for name in ("folder", "index"))
                found = files_search.search(folder, index, **arguments)
            else:
                found = http_search.search(**arguments)
        except http_search.EndpointFailed as error:
            return CommandResult(1, "", False, 0.0, False, str(error))
        return CommandResult(0, json.dumps(found), False, 0.0, False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codex_multi_role.extensions.research.search_providers.run_command", here)
        yield


QUESTION = "What is known of the old bridge of the town?"
OPENED, TOLL = "When was the bridge opened?", "What toll did carriages pay?"
COLOUR, ZEBRA = "Which wallpaper hangs inside?", "How many zebras graze?"
"""Two on which no document says anything."""
BUILT = "The chronicle of the town, kept by its clerks, tells of floods, fires and markets in all those years.\n"
DOCUMENTS = {
    "chronicle.md": f"---\ndate: 1890-01-01\n---\n# Chronicle\nThe bridge was opened in 1887.\n{BUILT}",
    "copy.txt": f"The bridge was opened in 1887.\n{BUILT}",
    "guide.html": "<title>Guide</title><meta name='date' content='2015-06-01'><p>The bridge was opened in 1889.</p>"
    "<p>Visitors find it behind the mill, where boats can be hired from spring until the first frost.</p>",
    "mill.md": "# The mill\nMiller Hanna ground the flour there.\n",
    "ledger.txt": "A toll of two pence was due from all carriages.\nThe clerk of the ledger counted them daily.\n",
    "bruecke.md": "Die Brücke wurde nach langer Arbeit eröffnet, und die Stadt feierte mit Musik und Wein (opened).\n",
}
PLAYS: dict[str, list[Record]] = yaml.safe_load(list_definitions(PLAYBOOKS, None)["research"].read_text())["roles"]
LINES = """prompt.split('"text": "')[1].split('"\\n')[0].split('\\\\n')"""
NOTHING: Record = {"json": {"extracted_facts": [], "confidence": 0, "new_topics_to_research": []}}


def planned(*texts: str) -> Record:
    """A plan of these questions, the first the most important."""
    questions = [{"text": text, "priority": number} for number, text in enumerate(texts, 1)]
    return {"json": {"sub_questions": questions, "estimated_time_seconds": 60}}


def read_with(confidence: float = 0.8, topics: str = "[]") -> Record:
    """Each non-heading among a text's first two lines is a fact; ``topics``: an expression of what it leads to."""
    lines = f"{LINES} | reject('in', ['# Chronicle']) | list"
    answer = {
        "extracted_facts": f"{{{{ ({lines})[:2] }}}}",
        "confidence": confidence,
        "new_topics_to_research": f"{{{{ {topics} }}}}",
    }
    return {"json": answer}


VERIFIES: Record = {
    "text": '{"verified_facts": [{"claim": {{ prompt.split(\'"claim": "\')[1].split(\'",\')[0] | tojson }}, '
    '"sources": [], "confidence": 0.9, "is_consistent": true, "notes": "all say so"}], "discrepancies": ['
    "{% if 'in 1887' in prompt and 'in 1889' in prompt %}"
    '{"topic": "year of opening", "description": "1887 or 1889", "preferred_claim": "It was opened in 1887.", '
    '"resolution_basis": "credibility", "notes": "The chronicle was written then."}{% endif %}]}'
}


class Researching:
    """A folder of ``documents`` and the answers of the roles, those of the shipped playbook unless they are given."""

    def __init__(self, folder: Path, documents: dict[str, str] = DOCUMENTS, **plays: list[Record]) -> None:
        own = {
            "research_planner": [planned(OPENED, COLOUR, ZEBRA)],
            "researcher": [read_with()],
            "fact_checker": [VERIFIES],
        }
        self.team = TeamFolder(folder, {"bystander": {}}, {**PLAYS, **own, **plays}, {"repeat_last": True})
        self.config: tuple[str, ...] = ()
        self.sources = folder / "sources"
        self.sources.mkdir()
        for name, text in documents.items():
            (self.sources / name).write_text(text)

    def search_with(self, *providers: Record) -> None:
        """Search with these providers from now on."""
        settings = {"version": 1, "providers": list(providers)}
        (self.team.folder / "roles/search.yaml").write_text(yaml.safe_dump(settings))

    def run(self, on_event: Callable[[Record], None] | None = None, **inputs: object) -> RunReport:
        """Run the flow. ``inputs``: those of the flow; ``on_event`` sees each event when it happens."""
        given = {"depth": "quick", "sources": str(self.sources), "concurrency": 1, **inputs}
        options = self.team.options(flow="research", goal=QUESTION, inputs=given, config=self.config)
        self.team.events.clear()

        def told(event: Record) -> None:
            self.team.events.append(event)
            if on_event is not None:
                on_event(event)

        with searching_here():
            self.report: RunReport = run(options, told)
        return self.report

    def asked(self, role: str) -> int:
        """How many turns the role took."""
        return sum(event["role"].split(".")[0] == role for event in self.team.of_type("turn_started"))

    def data(self, name: str = "findings.json") -> Any:
        """A JSON file of the run folder."""
        return read(self.report.folder / name)

    @property
    def states(self) -> str:
        """The states that the run went through."""
        return " ".join(each["state"] for each in self.data("states.json")["run"]["history"])

    @property
    def sources_found(self) -> dict[str, Record]:
        """The sources of the run by their id."""
        return {source["id"]: source for source in self.data("sources.json")["sources"]}

    @property
    def text(self) -> str:
        """The report."""
        return (self.report.folder / "research.md").read_text()
