from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from codex_multi_role.checks.command import run_argv
from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.workspace.commands import Sandbox, no_sandbox
from tests.support.checks import MakeContext, run_check

pytestmark = pytest.mark.real


@pytest.fixture
def command(make_context: MakeContext) -> MakeContext:
    """``command(files, argv=...)``: a context on a workspace with these files and the rest as options."""

    def make(
        files: Mapping[str, str],
        wrapped_by: Sandbox = no_sandbox,
        seconds: float = 60,
        inherited: Mapping[str, str] | None = None,
        **options: object,
    ) -> CheckContext:
        return replace(make_context(files, wrapped_by, seconds, inherited), options=options)

    return make


_run = partial(run_check, run_argv)


def _shell(line: str) -> list[str]:
    return ["sh", "-c", line]


def _python(line: str) -> list[str]:
    return [sys.executable, "-c", line]


def test_command_that_ends_well(command: MakeContext) -> None:
    context = command({"a b.txt": "hello"}, argv=["cat", "a b.txt"])
    result = _run(context)
    assert result.pop("seconds") > 0
    assert result == {
        "status": "ok",
        "reason": "",
        "exit_code": 0,
        "stdout": "hello",
        "truncated": False,
        "stderr": "",
        "output_path": str(context.folder / "output.txt"),
        "json": None,
        "command": "cat 'a b.txt'",
        "sandbox": True,
    }
    assert (context.folder / "output.txt").read_text() == "hello"


def test_no_shell_reads_the_arguments(command: MakeContext) -> None:
    assert _run(command({}, argv=["echo", "$HOME; ls *"]))["stdout"] == "$HOME; ls *\n"


@pytest.mark.parametrize(
    ("expect", "status", "reason"),
    [({}, "failed", "exit code 3"), ({"expect": [0, 3]}, "ok", ""), ({"expect": [1]}, "failed", "exit code 3")],
)
def test_exit_codes_that_are_well(command: MakeContext, expect: dict[str, object], status: str, reason: str) -> None:
    result = _run(command({}, argv=_shell("echo why >&2; exit 3"), **expect))
    assert (result["status"], result["reason"], result["exit_code"]) == (status, reason, 3)
    assert result["stderr"] == "why\n"


def test_signal_is_a_failure(command: MakeContext) -> None:
    result = _run(command({}, argv=_shell("kill -9 $$")))
    assert (result["status"], result["exit_code"]) == ("failed", -9)


def test_noise_on_standard_error_does_not_spoil_the_json(command: MakeContext) -> None:
    noise = "import sys, json; w = sys.stderr.write; w('warning {\\n')"
    line = f"{noise}; print(json.dumps({{'a': [1]}}), end='', flush=True); w('] bye' * 100_000)"
    context = command({}, argv=_python(line), json=True)
    result = _run(context)
    assert (result["status"], result["json"], result["truncated"]) == ("ok", {"a": [1]}, False)
    assert result["stdout"] == '{"a": [1]}'
    assert len(result["stderr"]) == 4_000
    assert (context.folder / "stderr.txt").read_text().startswith("warning {\n]")


@pytest.mark.parametrize(
    ("printed", "wanted", "status", "data"),
    [
        ("[1]", "auto", "ok", [1]),
        ("[1]", True, "ok", [1]),
        ("[1]", False, "ok", None),
        ("null", True, "ok", None),
        ("[1", "auto", "ok", None),
        ("[1", True, "failed", None),
        ("", True, "failed", None),
        ("[NaN]", True, "failed", None),
        ("[1] [2]", True, "failed", None),
    ],
)
def test_json(command: MakeContext, printed: str, wanted: object, status: str, data: object) -> None:
    result = _run(command({}, argv=["printf", "%s", printed], json=wanted))
    assert (result["status"], result["json"], result["stdout"]) == (status, data, printed)
    assert bool(result["reason"]) == (status == "failed")
    assert not result["reason"] or result["reason"].startswith("standard output is not JSON: ")


def test_json_of_a_failed_command_is_there_too(command: MakeContext) -> None:
    result = _run(command({}, argv=_shell("echo '{\"errors\": 2}'; exit 1")))
    assert (result["status"], result["json"]) == ("failed", {"errors": 2})


def test_long_output_is_cut_in_the_result_and_whole_in_its_file(command: MakeContext) -> None:
    context = command({}, argv=_python("print('[\"' + 'x' * 100_000 + '\"]')"))
    result = _run(context)
    assert result["truncated"]
    assert 19_900 < len(result["stdout"]) <= 20_000
    assert result["stdout"].startswith('["x')
    assert result["stdout"].endswith('x"]\n')
    assert result["json"] == ["x" * 100_000]
    assert len((context.folder / "output.txt").read_text()) == 100_005


def test_oversized_output_is_truncated_and_not_parsed_as_json(command: MakeContext) -> None:
    """The output file is limited as well."""
    context = command({}, argv=_python("print('[\"' + 'x' * 5_000_000 + '\"]')"))
    result = _run(context)
    assert (result["status"], result["json"], result["truncated"]) == ("ok", None, True)
    assert (context.folder / "output.txt").stat().st_size < 2 * 1024 * 1024 + 100


@pytest.mark.parametrize(
    ("seconds", "option"), [(0.3, {}), (60, {"timeout_seconds": 0.3}), (0.3, {"timeout_seconds": 60})]
)
def test_deadline_is_the_smaller_one(command: MakeContext, seconds: float, option: dict[str, object]) -> None:
    result = _run(command({}, seconds=seconds, argv=_shell("echo begun; sleep 600"), **option))
    assert (result["status"], result["exit_code"], result["stdout"]) == ("timed out", None, "begun\n")
    assert result["reason"].startswith("no result after 0.")


@pytest.mark.parametrize(
    "argv",
    [
        ["no-such-program"],
        ["./no-such-program"],
        ["a.txt"],
        ["./a.txt"],
        ["./sub"],
        [""],
        ["nul\x00"],
        ["echo", "\x00"],
    ],
)
@pytest.mark.parametrize("sandbox", [True, False])
def test_program_that_cannot_be_run(command: MakeContext, argv: list[str], sandbox: bool) -> None:
    result = _run(command({"a.txt": "", "sub/a": ""}, argv=argv, sandbox=sandbox))
    assert (result["status"], result["exit_code"], result["seconds"]) == ("could not run", None, 0.0)
    assert result["reason"]
    assert result["command"] == shlex.join(argv)


def test_working_folder_in_the_workspace(command: MakeContext) -> None:
    files = {"sub/tool": "#!/bin/sh\npwd\n"}
    for cwd in ("sub", "./sub/", "sub/."):
        for sandbox in (True, False):
            context = command(files, argv=["./tool"], cwd=cwd, sandbox=sandbox)
            (context.workspace.root / "sub" / "tool").chmod(0o755)
            assert _run(context)["stdout"] == f"{context.workspace.root}/sub\n"


def test_working_folder_that_is_not_there(command: MakeContext) -> None:
    for cwd in ("later", "a.txt"):
        result = _run(command({"a.txt": ""}, argv=["pwd"], cwd=cwd))
        assert (result["status"], result["reason"]) == ("could not run", f"folder {cwd} does not exist")


@pytest.mark.parametrize("cwd", ["..", "/tmp", "a/../..", "~", ".git", "sub/.git/hooks", "away", ""])
def test_working_folder_elsewhere_is_refused(command: MakeContext, cwd: str) -> None:
    context = command({"a.txt": ""}, argv=["pwd"], cwd=cwd)
    (context.workspace.root / "away").symlink_to("/tmp")
    with pytest.raises(UsageError, match=r"^check command: cwd: unsafe path"):
        run_argv(context)


def test_environment_has_what_was_named_and_no_secret(command: MakeContext) -> None:
    environment = {"MY_API_KEY": "x", "OTHER_TOKEN": "y", "KEPT": "yes", "CHANGED": "before"}
    added = {"OTHER_TOKEN": "named", "CHANGED": "after", "EMPTY": ""}
    line = "import os, json; print(json.dumps(dict(os.environ)))"
    seen = _run(command({}, inherited=environment, argv=_python(line), environment=added))["json"]
    assert "MY_API_KEY" not in seen
    assert (seen["KEPT"], seen["OTHER_TOKEN"], seen["CHANGED"], seen["EMPTY"]) == ("yes", "named", "after", "")


def test_temporary_files_are_outside_workspace_and_removed(
    command: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = command({}, argv=_shell('touch "$TMPDIR/x"; echo "$TMPDIR"'))
    monkeypatch.setattr(tempfile, "tempdir", str(context.workspace.root))
    where = Path(_run(context)["stdout"].strip())
    assert not where.is_relative_to(context.workspace.root)
    assert not where.exists()


def test_sandbox_is_disabled_only_on_request(command: MakeContext) -> None:
    def marked(argv: Sequence[str], writable: Path) -> list[str]:
        assert writable.is_dir()
        return ["env", "INSIDE=yes", *argv]

    for options, inside in (({}, "yes"), ({"sandbox": True}, "yes"), ({"sandbox": False}, "")):
        result = _run(command({}, wrapped_by=marked, argv=_shell('printf "$INSIDE"'), **options))
        assert (result["stdout"], result["sandbox"]) == (inside, options.get("sandbox", True))


def test_in_codexs_sandbox(command: MakeContext, codex_sandbox: Sandbox) -> None:
    line = 'echo x > here; echo x > ../above; echo x > "$TMPDIR/t" && (echo x > ../../out) 2>/dev/null || echo refused'
    context = command({"sub/a": ""}, wrapped_by=codex_sandbox, argv=_shell(line), cwd="sub", json=False)
    assert _run(context)["stdout"] == "refused\n"
    assert (context.workspace.root / "sub" / "here").exists()
    assert (context.workspace.root / "above").exists()
    result = _run(command({}, wrapped_by=codex_sandbox, argv=_shell("echo '{\"a\": 1}'; echo no >&2; exit 7")))
    assert (result["status"], result["exit_code"], result["json"]) == ("failed", 7, {"a": 1})
    result = _run(command({}, wrapped_by=codex_sandbox, argv=["no-such-program"]))
    assert (result["status"], result["reason"]) == ("could not run", "program not found: no-such-program")


def test_run_that_stops_ends_the_command(command: MakeContext) -> None:
    stopping = Event()
    stopping.set()
    with pytest.raises(RunInterrupted):
        run_argv(replace(command({}, argv=["sleep", "600"]), stopping=stopping))
