"""Whether Mermaid diagrams parse, by Mermaid's own parser. Without Node and the npm package they are not judged."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.checks import CheckContext
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.host.programs import program_path
from codex_multi_role.host.redaction import without_secrets
from codex_multi_role.workspace import run_command

OWN_PARSER = "Mermaid's own parser"
NOT_JUDGED = "not judged"
PACKAGE = "mermaid"
MAX_SECONDS = 120.0
_MODULES = "node_modules"
_SCRIPT = """
import fs from 'node:fs';
import path from 'node:path';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
const [folder, file] = process.argv.slice(2);
const entry = createRequire(path.join(folder, 'x.js')).resolve('mermaid');
const load = async (name) => (await import(pathToFileURL(name))).default;
// Labels are cleaned by a library that wants a browser's document, which parsing has no use for.
const purify = await load(path.join(path.dirname(createRequire(entry).resolve('dompurify')), 'purify.es.mjs'));
if (!purify.isSupported) Object.assign(purify, {addHook() {}, removeHook() {}, sanitize: (text) => text});
const mermaid = await load(entry);
const problems = [];
for (const text of JSON.parse(fs.readFileSync(file, 'utf8'))) {
  try { await mermaid.parse(text); problems.push(''); }
  catch (error) { problems.push(String(error.message).split('\\n').slice(0, 2).join(' ') || 'it does not parse'); }
}
console.log(JSON.stringify(problems));
"""


@dataclass(frozen=True)
class Judgement:
    """``verdicts``: what is wrong with each judged diagram, or empty. ``by``: by whom, or why they were not judged."""

    verdicts: Mapping[str, str]
    by: str


def judge_diagrams(context: CheckContext, diagrams: Sequence[str]) -> Judgement:
    """Judge all diagrams at once: Mermaid takes seconds to load. Raises RunInterrupted, StorageError."""
    node = shutil.which("node", path=program_path(context.environment))
    folder = next(_packages(context, node), None) if node else None
    if not diagrams:
        return Judgement({}, f"{NOT_JUDGED}: no diagrams")
    if node is None or folder is None:
        missing = "Node" if node is None else "Mermaid's npm package"
        return Judgement({}, f"{NOT_JUDGED}: {missing} is not installed")
    try:
        problems = _parsed(context, [node, str(folder)], diagrams)
    except ValueError as error:
        return Judgement({}, f"{NOT_JUDGED}: {error}")
    return Judgement(dict(zip(diagrams, problems, strict=True)), OWN_PARSER)


def _packages(context: CheckContext, node: str) -> Iterator[Path]:
    """The folders whose ``node_modules`` has the package: the workspace, NODE_PATH, and npm's global ones."""
    prefix = Path(node).resolve().parent.parent
    named = [Path(each) for each in context.environment.get("NODE_PATH", "").split(os.pathsep) if each]
    for modules in (
        context.workspace.root / _MODULES,
        *named,
        prefix / "lib" / _MODULES,
        Path("/usr/local/lib") / _MODULES,
    ):
        if (modules / PACKAGE / "package.json").is_file():
            yield modules.parent


def _parsed(context: CheckContext, command: list[str], diagrams: Sequence[str]) -> list[str]:
    """Parse in the sandbox, because a role may have written ``node_modules``. Raises ValueError with the reason."""
    with scratch_folder(context.workspace) as scratch:
        script, texts = scratch / "parse.mjs", scratch / "diagrams.json"
        script.write_text(_SCRIPT)
        texts.write_text(json.dumps(list(diagrams)))
        argv = context.sandbox([command[0], str(script), command[1], str(texts)], scratch)
        environment = without_secrets(context.environment)
        seconds = min(MAX_SECONDS, context.deadline_seconds)
        ran = run_command(
            argv, context.workspace.root, environment, seconds, stopping=context.stopping, separate_errors=True
        )
    try:
        problems = json.loads(ran.output)
    except ValueError:
        last_line = (ran.errors.strip().splitlines() or ["it printed nothing"])[-1]
        raise ValueError(f"{OWN_PARSER} {'took too long' if ran.timed_out else 'failed'}: {last_line}") from None
    if not isinstance(problems, list) or len(problems) != len(diagrams):
        raise ValueError(f"{OWN_PARSER} gave no answer for each diagram")
    return [str(each) for each in problems]
