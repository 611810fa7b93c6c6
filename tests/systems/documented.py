"""Runs of the flow document on the real binary, with the shipped playbook or what a test puts in its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from codex_multi_role import RunReport, answer
from codex_multi_role.catalog.packaged import packaged_roles
from tests.teams import Record, TeamFolder, read

PLAYS: Record = yaml.safe_load((packaged_roles() / "playbooks/document.yaml").read_text())["roles"]
SHOP = {
    "shop/money.py": "RATE = 2\n\n\ndef convert(amount):\n    return amount * RATE\n",
    "shop/orders.py": "from shop.money import convert\n\n\nclass Order:\n    def total(self):\n        return 1\n",
    "shop/cli.py": "from shop.orders import Order\n\n\ndef main():\n    return Order().total()\n",
}
TOP = ("OVERVIEW", "ARCHITECTURE", "GETTING_STARTED", "CONCEPTS")
YES: Record = {"yes": True}


class Documentation:
    """A workspace of ``files``, and the answers of the roles where they are not the shipped playbook's."""

    def __init__(self, folder: Path, files: Mapping[str, str] = SHOP, **plays: Any) -> None:
        self.team = TeamFolder(folder, {"bystander": {}}, {**PLAYS, **plays}, {"repeat_last": True})
        for name, text in files.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.team.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, options: Mapping[str, Any] = YES, /, **inputs: object) -> RunReport:
        given = {name: str(value) for name, value in inputs.items()}
        self.report = self.team.run(flow="document", goal="", inputs=given, **options)
        return self.report

    def answer(self, approved: bool, comment: str = "") -> RunReport:
        answer("latest", runs_dir=self.team.runs, approved=approved, comment=comment)
        self.report = self.team.resume()
        return self.report

    @property
    def told(self) -> Any:
        return read(self.report.folder / "document.json")

    @property
    def asked(self) -> list[str]:
        return [event["role"].split(".")[0] for event in self.team.of_type("turn_started")]

    @property
    def steps(self) -> list[str]:
        """The steps of the flow itself, in their order."""
        return [step for step in self.all_steps if "/" not in step]

    @property
    def all_steps(self) -> list[str]:
        """Those of the flows it calls as well, such as ``planning.1/by_layers``."""
        return [event["step"] for event in self.team.of_type("step_started")]

    def prompt(self, unit: str) -> str:
        """What was asked there, such as ``planning.1/semantic_grouping.1``."""
        (found,) = [
            (path / "prompt.txt").read_text()
            for path in self.report.folder.glob("*/turn_*")
            if read(path / "turn.json")["unit"] == unit
        ]
        return found

    def page(self, source: str) -> str:
        return (self.team.workspace / f"docs/files/{source}.md").read_text()

    @property
    def documents(self) -> list[str]:
        docs = self.team.workspace / "docs"
        return sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
