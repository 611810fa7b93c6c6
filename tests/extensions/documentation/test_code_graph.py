"""What the check reports about a folder, whatever is in it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import CheckFailed, RunInterrupted, UsageError
from codex_multi_role.extensions.documentation import other_code
from codex_multi_role.extensions.documentation.code_graph import read_code_graph
from codex_multi_role.workspace import Workspace
from tests.support.checks import MakeContext
from tests.support.workspaces import write_files

PACKAGE = {
    "shop/__init__.py": "from shop.orders import Order\n",
    "shop/money.py": "RATE: float = 2\nasync def convert(): ...\n",
    "shop/orders.py": """
        from typing import TYPE_CHECKING
        from . import money
        if TYPE_CHECKING:
            from shop.cli import main
        class Order:
            total = 0
            def add(self):
                def inner(): ...
                from shop.store import save
    """,
    "shop/store.py": "import shop.orders, os.path\ntry:\n    import requests\nexcept ImportError:\n    FAST = False\n",
    "shop/cli.py": "from shop.store import save\nfrom shop import orders\n",
}


def graph(make_context: MakeContext, files: dict[str, str], **options: object) -> dict[str, Any]:
    return read_code_graph(make_context(files, **options))


def of(result: dict[str, Any], path: str) -> dict[str, Any]:
    (file,) = [each for each in result["files"] if each["path"] == path]
    return dict(file)


def test_files_symbols_dependencies_and_layers_of_a_package(make_context: MakeContext) -> None:
    result = graph(make_context, PACKAGE)
    assert (result["status"], result["cycles"], result["languages"]) == ("analysed", [], {"Python": 5})
    assert result["layers"] == [
        ["shop/money.py"],
        ["shop/orders.py"],
        ["shop/__init__.py", "shop/store.py"],
        ["shop/cli.py"],
    ]
    orders = of(result, "shop/orders.py")
    assert (orders["dependencies"], orders["deferred"]) == (["shop/money.py"], ["shop/store.py"])
    assert (orders["classes"], orders["functions"], orders["constants"]) == (["Order"], ["Order.add"], ["Order.total"])
    assert (of(result, "shop/money.py")["functions"], of(result, "shop/money.py")["constants"]) == (
        ["convert"],
        ["RATE"],
    )
    assert of(result, "shop/cli.py")["dependencies"] == ["shop/orders.py", "shop/store.py"]
    assert of(result, "shop/store.py")["constants"] == ["FAST"]
    assert result["external"] == ["os", "requests", "typing"]
    assert of(result, "shop/cli.py")["lines"] == 2
    assert '    n2["shop/cli.py"]\n' in result["mermaid"]
    assert "    n2 --> n4\n" in result["mermaid"]


def test_fork_of_a_project_has_its_name(make_context: MakeContext) -> None:
    """Prompts have the name, so that a rerun in a fork's folder can reuse its turns."""
    files = {"__init__.py": "", "a.py": "import shop.b\n", "b.py": ""}
    result = graph(make_context, {f"shop.fork-1a/{name}": text for name, text in files.items()}, repo="shop.fork-1a")
    assert (result["name"], of(result, "a.py")["dependencies"]) == ("shop", ["b.py"])


def test_batches_are_three_files_of_a_layer(make_context: MakeContext) -> None:
    result = graph(make_context, {f"m{number}.py": "" for number in range(4)} | {"n.py": "import m0"})
    assert result["batches"] == [["m0.py", "m1.py", "m2.py"], ["m3.py"], ["n.py"]]


def test_import_cycles_are_reported_and_share_a_layer(make_context: MakeContext) -> None:
    result = graph(make_context, {"a.py": "import b", "b.py": "import c", "c.py": "import a", "d.py": "import a"})
    assert (result["cycles"], result["layers"]) == ([["a.py", "b.py", "c.py"]], [["a.py", "b.py", "c.py"], ["d.py"]])


@pytest.mark.parametrize(
    ("files", "importer", "dependencies", "external"),
    [
        ({"__init__.py": "", "base.py": "", "own.py": "from work.base import X"}, "own.py", ["base.py"], []),
        ({"src/pkg/a.py": "", "src/pkg/b.py": "import pkg.a"}, "src/pkg/b.py", ["src/pkg/a.py"], []),
        ({"tools/help.py": "", "tools/run.py": "import help"}, "tools/run.py", ["tools/help.py"], []),
        ({"p/__init__.py": "", "p/sub/deep.py": "from .. import x"}, "p/sub/deep.py", ["p/__init__.py"], []),
        ({"pkg/x.py": "", "pkg/sub/deep.py": "from ..x import y"}, "pkg/sub/deep.py", ["pkg/x.py"], []),
        (
            {"l/1/src/one/__init__.py": "", "l/2/src/two/__init__.py": "", "l/2/src/two/a.py": "import one"},
            "l/2/src/two/a.py", ["l/1/src/one/__init__.py"], [],
        ),
        (
            {"x/app/__init__.py": "", "y/app/__init__.py": "", "y/tests/test_api.py": "from app import run"},
            "y/tests/test_api.py", ["y/app/__init__.py"], [],
        ),
        ({"p/__init__.py": "", "p/typing.py": "", "p/a.py": "from . import typing"}, "p/a.py", ["p/typing.py"], []),
        ({"help.py": "", "a/help.py": "", "a/run.py": "import help"}, "a/run.py", ["a/help.py"], []),
        (
            {"types.pyi": "", "helper.py": "", "tests/test_helper.py": "import helper"},
            "tests/test_helper.py", ["helper.py"], [],
        ),
        # only an import root has top-level modules: those of Python and of installed packages are external
        ({"f/__init__.py": "", "f/typing.py": "", "f/cli.py": "import typing as t"}, "f/cli.py", [], ["typing"]),
        ({"__init__.py": "", "typing.py": "", "cli.py": "from typing import Any"}, "cli.py", [], ["typing"]),
        ({"logging.py": "", "run.py": "import logging.handlers"}, "run.py", [], ["logging"]),
        ({"p/__init__.py": "", "p/json/__init__.py": "", "p/a.py": "import json"}, "p/a.py", [], ["json"]),
        ({"__init__.py": "", "click.py": "", "a.py": "from click import echo"}, "a.py", [], ["click"]),
        ({"tests/requests.py": "", "shop/a.py": "import requests"}, "shop/a.py", [], ["requests"]),
        ({"fmt.go": "package main\n", "a.go": 'package main\nimport "fmt"\n'}, "a.go", [], ["fmt"]),
    ],
)  # fmt: skip
def test_imports_are_resolved_as_the_folder_is_used(
    make_context: MakeContext, files: dict[str, str], importer: str, dependencies: list[str], external: list[str]
) -> None:
    result = graph(make_context, files)
    assert (of(result, importer)["dependencies"], result["external"]) == (dependencies, external)


@pytest.mark.parametrize(
    ("statement", "depends"),
    [
        ('import type { A } from "./b.js";', False),
        ('import type A from "./b.js";', False),
        ('import { type A, type B } from "./b";', False),
        ('export type { A } from "./b";', False),
        ('export { type A } from "./b";', False),
        ('type A = import("./b").A;', False),
        ('let a: typeof import("./b");', False),
        ('import type A = require("./b");', False),
        ('import { type A, b } from "./b";', True),
        ('import A, { type B } from "./b";', True),
        ('import type from "./b";', True),
        ('import * as A from "./b";', True),
        ('import {} from "./b";', True),
        ('import "./b";', True),
        ('import A = require("./b");', True),
        ('export { a } from "./b";', True),
        ('export * from "./b";', True),
        ('export * as a from "./b";', True),
        ('const a = await import("./b");', True),
        ('import b from "b";', False),  # a package, not the file beside
    ],
)
def test_only_imports_of_values_are_dependencies_in_typescript(
    make_context: MakeContext, statement: str, depends: bool
) -> None:
    files = {f"a.{ending}": statement for ending in ("ts", "mts", "cts", "tsx")}
    result = graph(make_context, {**files, "b.ts": "export const a = 1;"})
    assert {name: of(result, name)["dependencies"] == ["b.ts"] for name in files} == dict.fromkeys(files, depends)


def test_syntax_unknown_to_the_grammar_leaves_file_partly_read(make_context: MakeContext) -> None:
    newer = "export interface Box<\n  out T,\n  out U = T,\n> { value: T }\nexport function open() {}\n"
    result = graph(make_context, {"box.ts": newer, "bad.ts": "}}} ((( %%%\n", "good.ts": "export const a = 1;\n"})
    assert {each["path"]: (each["problem"], each["partly"]) for each in result["files"]} == {
        "box.ts": ("", "line 2 and 1 more"),
        "bad.ts": ("line 1: syntax that the grammar does not know", ""),
        "good.ts": ("", ""),
    }
    assert (of(result, "box.ts")["functions"], result["problems"], result["partly"]) == (["open"], 1, 1)


def test_nothing_is_run(make_context: MakeContext) -> None:
    source = "import sys\nsys.modules['seen_by_the_graph'] = sys\nraise SystemExit\n"
    graph(make_context, {"evil.py": source, "conftest.py": source, "__init__.py": source})
    assert "seen_by_the_graph" not in sys.modules


def test_empty_folder_says_so(make_context: MakeContext) -> None:
    result = graph(make_context, {"README.md": "Hello", "LICENSE": "MIT", ".hidden/a.py": "", "__pycache__/b.py": ""})
    assert (result["status"], result["files"], result["layers"]) == ("empty", [], [])
    assert result["reason"] == ". contains no source file in a supported language"
    assert result["other"] == {".md": 1, "LICENSE": 1}


def test_folder_that_is_not_there_is_refused(make_context: MakeContext) -> None:
    with pytest.raises(UsageError, match="check code_graph: repo: nowhere: the folder does not exist"):
        graph(make_context, {}, repo="nowhere")


def test_what_cannot_be_read_is_listed_with_the_reason(make_context: MakeContext, tmp_path: Path) -> None:
    context = make_context({"good.py": "x = 1\n", "bad.py": "def (:\n"})
    root = context.workspace.root
    write_files(root, {"binary.py": b"\x00\x01", "latin.py": b"# a\n# \xe4\n", "huge.py": b"#" * (5 * 1024 * 1024 + 1)})
    os.mkfifo(root / "pipe.py")
    (tmp_path / "outside.py").write_text("SECRET = 1\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    result: dict[str, Any] = read_code_graph(context)
    assert {each["path"]: each["problem"] for each in result["files"]} == {
        "bad.py": "line 1: invalid syntax",
        "binary.py": "binary: it has a NUL byte",
        "good.py": "",
        "huge.py": "larger than 5242880 bytes",
        "latin.py": "line 2: not UTF-8 text",
    }
    assert result["problems"] == 4


def test_what_is_excluded_is_left_out(make_context: MakeContext) -> None:
    files = {"a.py": "", "tests/test_a.py": "", "docs/conf.py": "", "env/pyvenv.cfg": "", "env/lib/x.py": ""}
    result = graph(make_context, files, exclude=["tests/*", "docs"])
    assert [each["path"] for each in result["files"]] == ["a.py"]


def test_runs_inside_the_folder_are_not_source(make_context: MakeContext) -> None:
    """The analyzed folder may contain the runs folder with copies of the source."""
    context = make_context({"a.py": "", "runs/r1/worktrees/w/a.py": ""})
    root = context.workspace.root
    result: dict[str, Any] = read_code_graph(replace(context, workspace=Workspace(root, (root / "runs",))))
    assert result["layers"] == [["a.py"]]


def test_drawing_of_many_files_is_one_of_folders(make_context: MakeContext) -> None:
    files = {f"p{number % 5}/m{number}.py": f"import p{(number + 1) % 5}.m{number - 4}" for number in range(100)}
    result = graph(make_context, files)
    assert result["mermaid_of"] == "folders"
    assert '"p0"' in result["mermaid"]
    assert "m17" not in result["mermaid"]


def test_it_ends_with_its_run_and_its_deadline(make_context: MakeContext) -> None:
    with pytest.raises(CheckFailed, match="check code_graph: took longer than 0 s"):
        read_code_graph(make_context({"a.py": ""}, seconds=0))
    context = make_context({"a.py": ""})
    context.stopping.set()
    with pytest.raises(RunInterrupted):
        read_code_graph(context)


OTHERS: dict[str, tuple[str, list[str], list[str], list[str]]] = {
    "web/app.ts": (
        "import {a} from './util.js'; export class App { run(): void {} }\ninterface Shape {}\n",
        ["web/util.ts"], ["App", "Shape"], ["run"],
    ),
    "web/util.ts": ("export function a() {}", [], [], ["a"]),
    "web/view.jsx": ("const u = require('./lib');\nconst View = () => 1;\n", ["web/lib/index.js"], [], ["View"]),
    "web/lib/index.js": ("import x from 'react'", [], [], []),
    "c/main.c": (
        '#include "deep/list.h"\n#include <stdio.h>\nint main(void) { return 0; }\n',
        ["c/include/deep/list.h"], [], ["main"],
    ),
    "c/include/deep/list.h": ("struct list { int x; };", [], ["list"], []),
    "cpp/one.cpp": ("class Stack { void push() {} };", [], ["Stack"], ["push"]),
    "go/cmd/main.go": (
        'package main\nimport ("fmt"; "example.com/x/go/store")\nfunc main() {}\n', ["go/store/store.go"], [], ["main"]
    ),
    "go/store/store.go": (
        "package store\ntype Store struct{}\nfunc (s Store) Get() {}\n", [], ["Store"], ["Get"]
    ),
    "rust/src/main.rs": ("mod shapes;\nuse crate::shapes::Circle;\nfn main() {}", ["rust/src/shapes.rs"], [], ["main"]),
    "rust/src/shapes.rs": ("pub struct Circle;\npub trait Area {}\n", [], ["Circle", "Area"], []),
    "java/com/acme/App.java": (
        "import com.acme.model.Item; class App { void go() {} }", ["java/com/acme/model/Item.java"], ["App"], ["go"]
    ),
    "java/com/acme/model/Item.java": ("package com.acme.model; class Item {}", [], ["Item"], []),
}  # fmt: skip
"""By path: the text, the files that it depends on, its classes and its functions."""


@pytest.mark.skipif(find_spec("tree_sitter") is None, reason="the extra [document] is not installed")
def test_other_languages_through_their_grammars(make_context: MakeContext) -> None:
    result = graph(make_context, {path: text for path, (text, *_) in OTHERS.items()})
    found = {file["path"]: [file[key] for key in ("dependencies", "classes", "functions")] for file in result["files"]}
    assert found == {path: expected for path, (_, *expected) in OTHERS.items()}
    assert {"react", "fmt", "stdio.h"} <= {*result["external"]}
    assert result["problems"] == 0


def test_language_without_its_grammar_says_what_to_install(
    make_context: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    other_code._tools.cache_clear()
    (file,) = graph(make_context, {"a.go": "package a"})["files"]
    assert file["problem"] == other_code.HOW_TO_INSTALL
    other_code._tools.cache_clear()
