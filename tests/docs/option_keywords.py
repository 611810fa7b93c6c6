"""The module with the types of the options of a run as keywords, from their table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from codex_multi_role.option import Option, Use, options_in
from codex_multi_role.run_options import GROUPS, OPTIONS

HEAD = '''"""The options of a run as keywords, for type checkers and editors.

Made by ``python -m tests.docs`` from the table of options in `run_options`; not edited by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict


class Added(Protocol):
    """`AddedOptions` of an extension."""

    def check(self, options: Any) -> None: ...  # noqa: ANN401


@dataclass(frozen=True)
class PlaybookAsk:
    """What a playbook that is a function is asked, and the names that the templates of any other one have.

    ``role`` is asked for the ``visit``-th time; ``repair``: the number of the repair turn, 0 for none; ``attempt``: how
    often the ``prompt`` was sent; ``unit``: the step's visit or the item that asks, empty in a team.
    """

    role: str
    visit: int
    repair: int
    attempt: int
    prompt: str
    unit: str
    tool_outputs: list[str]


PlaybookFunction = Callable[[PlaybookAsk], Mapping[str, Any] | str]
"""A playbook in Python: returns the answer, as a JSON object or as the whole text."""
'''
ADDED = "    added: Sequence[Added]\n"
"""The options of extensions, each in its own type."""
TYPES: Mapping[Any, str] = {
    Path: "str | os.PathLike[str]",
    tuple: "list[str] | tuple[str, ...]",  # no Sequence: a text is one too
    Mapping: "Mapping[str, Any]",
}


def option_keywords() -> str:
    """The source of the module."""
    options = OPTIONS
    shared = {name: each for name, each in options.items() if Use.RESUME in each.use}
    forked = {name: each for name, each in options.items() if Use.FORK in each.use and name not in shared}
    goal = {"goal": forked.pop("goal")}
    rest = {name: each for name, each in options.items() if name not in {*shared, *forked, *goal}}
    groups, bases = [], []
    for group, kind in GROUPS.items():
        own = {name: shared.pop(name) for name in options_in(kind) if name in shared}
        bases.append(f"{group.capitalize()}Keywords")
        about = f"What `resume` may change of `{kind.__name__}`."
        groups.append(_class(bases[-1], "TypedDict, total=False", about, own))
    classes = (
        *groups,
        _class("ResumeKeywords", f"{', '.join(bases)}, total=False", "What `resume` may change.", shared, ADDED),
        _class("NewRunKeywords", "ResumeKeywords, total=False", "What is given to a new run or a fork.", forked),
        _class("ForkKeywords", "NewRunKeywords, total=False", "What `fork` and `rerun` may change.", goal),
        _class("RunKeywords", "NewRunKeywords, total=False", "The options of `run` beside the goal.", rest),
        _class("OptionKeywords", "RunKeywords, total=False", "All options.", goal),
    )
    return "\n\n".join((HEAD, *classes))


def _class(name: str, bases: str, about: str, options: Mapping[str, Option], more: str = "") -> str:
    lines = (*(f"    {each.name}: {type_of(each)}\n" for each in options.values()), more)
    return f'class {name}({bases}):\n    """{about}"""\n\n{"".join(lines)}'


def type_of(option: Option) -> str:
    """The type of the option as a keyword."""
    none = " | None" if option.is_optional else ""
    if option.name == "playbook":
        return f"{TYPES[Path]} | Mapping[str, Any] | PlaybookFunction{none}"
    if option.choices:
        return f"Literal[{', '.join(map(_quoted, get_args(option.type)))}]{none}"
    kind = Mapping if option.kind is dict else option.kind
    return f"{TYPES.get(kind, get_origin(kind) or kind.__name__)}{none}"


def _quoted(choice: str) -> str:
    return f'"{choice}"'
