"""Documentation: runs of the flow document on the real binary, and honest pages of a real package."""

from __future__ import annotations

import ast
import importlib.util
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from codex_multi_role import RunReport, answer
from codex_multi_role.checks import CheckContext
from codex_multi_role.extensions.documentation.code_graph import read_code_graph
from codex_multi_role.extensions.documentation.pages import write_pages
from codex_multi_role.extensions.documentation.quality import measure_documents
from codex_multi_role.reading.shipped import PLAYBOOKS, list_definitions
from tests.support.teams import Record, TeamFolder, read
from tests.support.workspaces import write_files

PLAYS: Record = yaml.safe_load(list_definitions(PLAYBOOKS, None)["document"].read_text())["roles"]
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
        """Write a file of the workspace."""
        write_files(self.team.workspace, {name: text})

    def run(self, options: Mapping[str, Any] = YES, /, **inputs: object) -> RunReport:
        """Run the flow; by default every question is answered with yes. ``inputs``: those of the flow."""
        given = {name: str(value) for name, value in inputs.items()}
        self.report = self.team.run(flow="document", goal="", inputs=given, **options)
        return self.report

    def answer(self, approved: bool, comment: str = "") -> RunReport:
        """Answer the open question and resume."""
        answer("latest", runs_dir=self.team.runs, approved=approved, comment=comment)
        self.report = self.team.resume()
        return self.report

    @property
    def told(self) -> Any:
        """The content of the run's ``document.json``."""
        return read(self.report.folder / "document.json")

    @property
    def asked(self) -> list[str]:
        """The roles of the turns, in the order in which they started."""
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

    @property
    def documents(self) -> list[str]:
        """The paths of all written documents, in order."""
        docs = self.team.workspace / "docs"
        return sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))


SECTIONS = {
    "OVERVIEW": ["Purpose", "Components"],
    "ARCHITECTURE": ["Layers", "Dependencies"],
    "GETTING_STARTED": ["Installation", "First steps"],
    "CONCEPTS": ["Terms"],
}


class Package:
    """A package of the standard library, copied to the workspace and documented there."""

    def __init__(self, context: CheckContext, name: str) -> None:
        self.context = context
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        root = context.workspace.root
        shutil.copytree(Path(found.origin).parent, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        self.docs = root / "docs"
        self.graph = dict[str, Any](read_code_graph(replace(context, options={"repo": name})))
        self.files: list[dict[str, Any]] = self.graph["files"]
        notes = [[self._note(root / name / file["path"], file) for file in self.files]]
        write_pages(replace(context, options={"graph": self.graph, "notes": notes}))
        for document, text in self._documents(name).items():
            (self.docs / f"{document}.md").write_text(text)

    def measure(self, **options: object) -> dict[str, Any]:
        """The quality of the documents; ``options`` replace those of the check."""
        given = {"graph": self.graph, "sections": SECTIONS, **options}
        return measure_documents(replace(self.context, options=given))

    @property
    def pages(self) -> dict[str, Path]:
        """The page of each source file, by its path."""
        return {file["path"]: self.docs / f"files/{file['path']}.md" for file in self.files}

    def _note(self, source: Path, file: Mapping[str, Any]) -> dict[str, Any]:
        tree = ast.parse(source.read_text())
        told = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("`", "").replace("<", "").replace("*", "")
        summary = " ".join(told.split()) or f"The part of the package that is called {file['path']}."
        documented = {
            node.name: (ast.get_docstring(node) or "").split("\n")[0].replace("`", "")
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        return {
            "path": file["path"],
            "summary": summary,
            "functions": [f"{name}: {documented.get(name, '')}" for name in file["functions"]],
            "classes": [f"{name}: {documented.get(name, '')}" for name in file["classes"]],
        }

    def _documents(self, name: str) -> dict[str, str]:
        links = [f"- [{file['path']}](files/{file['path']}.md), layer {file['layer']}" for file in self.files]
        classes = [f"- `{each}` in `{file['path']}`" for file in self.files for each in file["classes"]]
        functions = [f"- `{each}()` in `{file['path']}`" for file in self.files for each in file["functions"]]
        needs = [
            f"- `{file['path']}` needs {', '.join(f'`{each}`' for each in file['dependencies'])}"
            for file in self.files
            if file["dependencies"]
        ]
        diagram = f"```mermaid\n{self.graph['mermaid']}\n```"
        listed = "\n".join
        return {
            "OVERVIEW": f"# {name}\n\n## Purpose\n\nThe package `{name}` of the standard library.\n\n"
            f"## Components\n\n{listed(links)}\n",
            "ARCHITECTURE": f"# Architecture\n\n## Layers\n\n{diagram}\n\n## Dependencies\n\n"
            f"What each file needs:\n\n{listed(needs)}\n",
            "GETTING_STARTED": f"# Getting started\n\n## Installation\n\n`{name}` is part of Python.\n\n"
            f"## First steps\n\nCall one of these:\n\n{listed(functions)}\n",
            "CONCEPTS": f"# Concepts\n\n## Terms\n\nThe classes are:\n\n{listed(classes)}\n",
        }
