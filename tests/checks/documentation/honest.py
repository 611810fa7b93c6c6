"""Honest documentation of a real package, made of its own docstrings and code graph."""

from __future__ import annotations

import ast
import importlib.util
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_multi_role.checks import CheckContext
from codex_multi_role.checks.code_graph.dependency_graph import read_code_graph
from codex_multi_role.checks.documentation.pages import write_pages
from codex_multi_role.checks.documentation.quality import measure_documents

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
        given = {"graph": self.graph, "sections": SECTIONS, **options}
        return measure_documents(replace(self.context, options=given))

    @property
    def pages(self) -> dict[str, Path]:
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
