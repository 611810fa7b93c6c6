"""Bundles of a small team, and the same ones after somebody edited them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from codex_multi_role.extensions.replays.bundling import Bundled, make_bundle
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.git import Git
from tests.support.teams import WRITER, Record, TeamFolder, say, with_flow

RIGHT, HALF, WRONG = (f"def double(n):\n    return {value}\n" for value in ("n + n", "n * n", "0"))
TESTS = """from shop import double


def test_two():
    assert double(2) == 4


def test_three():
    assert double(3) == 6
"""
START = {"shop.py": WRONG, "test_shop.py": TESTS, "readme.md": "A shop.\n"}
STEPS: list[Record] = [
    {"id": "write", "ask": "writer"},
    {"id": "fix", "ask": "writer"},
    {"id": "judge", "ask": "judge"},
]
FIGURES = {"judgements": "{{ steps.judge.visits }}"}


def shop_team(folder: Path, steps: list[Record] | None = None) -> TeamFolder:
    """A writer that makes one of two tests pass, then both; then a judge."""
    writes = [say(f"write {n}", files=[{"path": "shop.py", "content": text}]) for n, text in ((1, HALF), (2, RIGHT))]
    team = TeamFolder(folder, {"writer": WRITER, "judge": {}}, {"writer": writes, "judge": [say("good")]})
    for name, text in START.items():
        (team.workspace / name).write_text(text)
    return with_flow(
        team, {"steps": steps or STEPS, "result": {"title": "The shop", "file": "shop.py", "figures": FIGURES}}
    )


def bundled(team: TeamFolder, **options: Any) -> Path:
    """The bundle of a recorded run of ``team``."""
    report = team.run(flow="own", record=team.folder / "run.ndjson", **options)
    return bundle_of(report.folder).path


def bundle_of(run: Path) -> Bundled:
    """A bundle beside the folder of all runs."""
    return make_bundle(RunFolder(run), run.parents[1] / "run.bundle")


@pytest.fixture(scope="session")
def shop_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of one run without tests, which is only read; the run is in ``runs/`` beside it."""
    return bundled(shop_team(tmp_path_factory.mktemp("shop")))


@dataclass
class Parts:
    """The parts of a bundle, to be edited. ``states``: a repository with the objects of its pack."""

    claims: Record
    recording: list[Record]
    team: dict[str, str]
    states: Git
    more: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, bundle: Path, place: Path) -> Parts:
        with zipfile.ZipFile(bundle) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        place.mkdir()
        git = Git(place, place)
        git.run("init", "--quiet", "--template=")
        git.run("index-pack", "--stdin", stdin=files.pop("states.pack"))
        claims = json.loads(files.pop("claims.json"))
        recording = [json.loads(line) for line in files.pop("recording.ndjson").decode().splitlines()]
        return cls(claims, recording, {name: text.decode() for name, text in files.items()}, git)

    @property
    def observed(self) -> Record:
        found: Record = self.claims["observed"]
        return found

    @property
    def exchanges(self) -> list[Record]:
        return [line for line in self.recording if line["type"] == "exchange"]

    @property
    def ended(self) -> Record:
        return self.recording[-1]

    def text(self, exchange: int) -> str:
        """What the model answered."""
        return str(self.exchanges[exchange]["items"][0]["content"][0]["text"])

    def answer(self, exchange: int, text: str) -> None:
        self.exchanges[exchange]["items"][0]["content"][0]["text"] = text

    def with_file(self, tree: str, path: str, text: str) -> str:
        """``tree`` with another content of ``path``, as a new tree."""
        oid = self.states.run("hash-object", "-w", "--stdin", stdin=text.encode()).stdout.decode().strip()
        index = self.states.git_dir / "index.new"
        self.states.run("read-tree", tree, index=index)
        self.states.run("update-index", "--add", "--cacheinfo", f"100644,{oid},{path}", index=index)
        return self.states.run("write-tree", index=index).stdout.decode().strip()

    def replace_state(self, old: str, new: str) -> None:
        """Wherever the bundle names the state ``old``, let it name ``new``."""
        self.claims = json.loads(json.dumps(self.claims).replace(old, new))
        self.recording = json.loads(json.dumps(self.recording).replace(old, new))

    def write(self, path: Path, replaced: Mapping[str, str] = MappingProxyType({})) -> Path:
        """Write them as a bundle with everything that git knows by now; ``replaced``: texts in the recording."""
        lines = "".join(json.dumps(line) + "\n" for line in self.recording)
        for old, new in replaced.items():
            lines = lines.replace(old, new)
        listed = self.states.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").stdout
        pack = self.states.run("pack-objects", "--stdout", "--quiet", stdin=listed).stdout
        files: dict[str, bytes | str] = {"claims.json": json.dumps(self.claims), "recording.ndjson": lines}
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in {**files, "states.pack": pack, **self.team, **self.more}.items():
                archive.writestr(name, content)
        return path
