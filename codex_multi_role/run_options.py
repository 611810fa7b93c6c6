"""The options of a run, and its report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from codex_multi_role.errors import UsageError
from codex_multi_role.option import Option, Range, Section, Use, option, options_in
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.registry import Registry

if TYPE_CHECKING:
    from codex_multi_role.option_keywords import OptionKeywords

OF_EACH = Use.ANYWHERE | Use.OWN
BOUNDING = OF_EACH | Use.BOUND
ON_THIS_MACHINE = Use.ANYWHERE | Use.LOCAL | Use.TRUST
HARMLESS = r"(model(_(provider|verbosity|context_window|reasoning_(effort|summary)))?|service_tier)\s*="
"""Settings of Codex that name neither a program nor a place: a provider that is named is one that the user defined."""
MOST_REPAIRS = 10
"""The maximum of ``repair_attempts``, because they bound the steps that an ask can record."""
A_DAY = 86_400
PROVIDER_ATTEMPTS = 3
"""How often one prompt is sent at most if the model provider or the Codex process fails."""
LIMITS = {"turns": "max_turns", "tokens": "max_tokens", "seconds": "max_seconds", "cost": "max_cost"}
"""The option that limits each amount."""
FIRST_PAUSE_SECONDS = 1.0
"""Maximum pause before a prompt is sent the second time; the maximum doubles for each later pause."""
LONGEST_PAUSE_SECONDS = 60.0
"""Maximum pause before a prompt is sent again, even if the provider asks for a longer one."""


def limits_in(options: Mapping[str, Any]) -> dict[str, float]:
    """The limits that these options, by name, set for a run, by what they limit."""
    return {what: options[name] for what, name in LIMITS.items() if options.get(name) is not None}


@dataclass(frozen=True, kw_only=True)
class RunPlace:
    """Where a run works and is recorded, and whose roles it has."""

    section: ClassVar = Section.TEAM

    roles: Path | None = option(
        None,
        "The catalog file, or a folder with catalog.yaml.",
        "PATH",
        shown_default="./roles if it has one, otherwise the shipped roles",
        use=OF_EACH | Use.LOCAL,
    )
    workspace: Path = option(
        Path(),
        "The folder that the roles work on.",
        "DIR",
        path="folder",
        use=OF_EACH | Use.LOCAL,
    )
    worktree: bool = option(
        False,
        "Work in a new git worktree at the checked-out commit; --workspace stays as it is.",
        use=Use.COMMON | Use.OWN | Use.LOCAL,
    )
    branch: str | None = option(
        None, "Create this branch, and work in a new git worktree of it.", "NAME", use=Use.OWN | Use.LOCAL
    )
    workspace_copy: tuple[str, ...] = option(
        (),
        "Copy these files or folders of --workspace, such as .env, into every new worktree or copy of it.",
        "GLOB",
        is_set_once=True,
    )
    workspace_setup: str | None = option(
        None,
        "Run this shell command in every new worktree or copy of the workspace, in the sandbox of the tests.",
        "COMMAND",
        shown_default="none",
        use=Use.ANYWHERE | Use.OUTSIDE,
        is_set_once=True,
    )
    runs_dir: Path = option(
        Path("runs"), "The folder in which runs are recorded.", "DIR", path="folder", use=Use.COMMON | Use.LOCAL
    )
    run_id: str | None = option(
        None,
        "The id of the run.",
        "ID",
        shown_default="date, time and a random part",
        use=Use.FORK | Use.LOCAL,
        is_set_once=True,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "worktree", self.worktree or bool(self.branch))


@dataclass(frozen=True, kw_only=True)
class RunAnswers:
    """Where the answers of the roles come from, and who answers the questions of the run."""

    section: ClassVar = Section.MODELS

    model: str | None = option(
        None, "The model for roles that do not name one.", "NAME", shown_default="chosen by Codex", use=BOUNDING
    )
    config: tuple[str, ...] = option(
        (), "A setting to pass to Codex.", "KEY=VALUE", flags=("-c", "--config"), use=BOUNDING | Use.TRUST
    )
    codex_bin: Path | None = option(
        None, "The Codex binary.", "PATH", shown_default="the bundled binary", use=ON_THIS_MACHINE, is_set_once=True
    )
    repair_attempts: int = option(
        2,
        "Maximum number of extra turns to repair an invalid answer.",
        "N",
        range=Range(0, MOST_REPAIRS),
        use=BOUNDING,
        is_set_once=True,
    )
    playbook: str | None = option(
        None,
        "Take the answers from this playbook instead of a model. auto: small valid answers made from the roles' "
        "JSON Schemas, to try a team of your own.",
        "NAME|FILE",
        section=Section.WITHOUT_A_MODEL,
        use=OF_EACH,
    )
    yes: bool = option(
        False, "Approve every review without asking.", section=Section.QUESTIONS, use=OF_EACH | Use.DECIDES
    )


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """What a run may use; None means unlimited."""

    section: ClassVar = Section.LIMITS

    max_turns: int | None = option(None, "Park the run (exit code 5) after N turns.", "N", range=Range(1), use=BOUNDING)
    max_tokens: int | None = option(
        None,
        "Park the run once N tokens, input and output, are exceeded, also within a turn.",
        "N",
        range=Range(1),
        use=BOUNDING,
    )
    max_cost: float | None = option(
        None,
        "Park the run once X US dollars are exceeded, also within a turn. Every model needs a price (--prices).",
        "X",
        range=Range(0, above=True),
        use=BOUNDING,
    )
    prices: Path | None = option(
        None,
        "The price list: what models cost per million tokens.",
        "FILE",
        shown_default="prices.yaml beside the catalog, otherwise the shipped list",
        path="file",
        use=Use.ANYWHERE | Use.BOUND,
        is_set_once=True,
    )
    max_seconds: float | None = option(
        None, "Park the run after S seconds of work, also within a turn.", "S", range=Range(0, above=True), use=BOUNDING
    )
    max_processes: int | None = option(
        None,
        "Maximum number of Codex processes; further turns wait for a free one.",
        "N",
        range=Range(1),
        use=BOUNDING,
        is_set_once=True,
    )


@dataclass(frozen=True, kw_only=True)
class RunTests:
    """How the tests of the workspace run, and the other checks."""

    section: ClassVar = Section.TESTS

    run_tests: bool = option(True, "Run pytest after each turn that changed files.", use=BOUNDING)
    baseline: bool = option(
        True,
        "Run the tests once before the first change, so that old failures do not count.",
        use=BOUNDING,
        is_set_once=True,
    )
    allow_removed_tests: tuple[str, ...] = option(
        (),
        "Accept that tests that passed before are gone, if they or their modules match.",
        "GLOB",
    )
    pytest_cmd: str | None = option(
        None,
        "The command that starts pytest.",
        "COMMAND",
        shown_default="`python -m pytest` in the project's environment",
        use=OF_EACH | Use.OUTSIDE,
        is_set_once=True,
    )
    python: Path | None = option(
        None,
        "The Python that runs the tests, or its virtual environment.",
        "PATH",
        shown_default="the project's virtual environment",
        use=ON_THIS_MACHINE,
        is_set_once=True,
    )
    test_sandbox: bool = option(
        True, "Run the tests in Codex's sandbox, without network.", use=Use.ANYWHERE | Use.OUTSIDE, is_set_once=True
    )
    test_seconds: float = option(
        300.0,
        "Time limit for each test run and each other check.",
        "SECONDS",
        range=Range(0, A_DAY, above=True),
        use=BOUNDING,
        is_set_once=True,
    )


@dataclass(frozen=True, init=False)
class RunOptions:
    """The options of ``run``, all of them keywords. Paths may be relative to the current folder, and may be texts.

    Times are in seconds, costs in US dollars. An empty ``goal`` means the flow's own. ``added`` is given as
    `AddedOptions` of extensions; kept, it has by name what differs from the default.
    """

    section: ClassVar = Section.GOAL

    goal: str = option("", "The goal for the team.", "TEXT", use=Use.FORK | Use.OWN)
    flow: str = option("cycles", "The flow to run.", "NAME", use=Use.FORK | Use.COMMON | Use.OWN)
    inputs: Mapping[str, Any] = option(
        {}, "Set an input of the flow.", "KEY=VALUE", flags=("-i", "--input"), use=BOUNDING
    )
    cycles: int = option(3, "Maximum number of cycles (rounds of all roles).", "N", range=Range(1), use=BOUNDING)
    place: RunPlace = RunPlace()
    answers: RunAnswers = RunAnswers()
    limits: RunLimits = RunLimits()
    tests: RunTests = RunTests()
    added: Mapping[str, Any] = field(default_factory=dict)

    def __init__(self, **options: Unpack[OptionKeywords]) -> None:
        """Raise `UsageError` for an unknown name, a wrong type, a value out of bounds, and what excludes each other."""
        given = _checked(options)
        for each in fields(self):
            group = GROUPS.get(each.name)
            value = given[each.name] if group is None else group(**{one.name: given[one.name] for one in fields(group)})
            object.__setattr__(self, each.name, value)
        for group in ADDED.that_load() if self.added else ():
            group(**{name: self.added[name] for name in options_in(group) if name in self.added}).check(self)

    def as_keywords(self) -> dict[str, Any]:
        """Every option by its name, as `RunOptions` takes them."""
        groups = (self, *(getattr(self, name) for name in GROUPS))
        values = {name: value for group in groups for name, value in vars(group).items()}
        return {**{name: values[name] for name in OPTIONS}, **self.added}

    def as_record(self) -> dict[str, Any]:
        """JSON for ``run.json``, with absolute paths, so that the run can be resumed from any folder."""
        record = {name: _plain(value) for name, value in self.as_keywords().items()}
        # Not resolved: the Python of a virtual environment is a symlink.
        record["python"] = str(self.tests.python.absolute()) if self.tests.python else None
        if self.answers.playbook and is_playbook_file(self.answers.playbook):
            record["playbook"] = str(Path(self.answers.playbook).absolute())
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RunOptions:
        """The inverse of `as_record`; what is missing has its default, `ended_options` are left out.

        Raises `UsageError` for an option of an extension that is not installed.
        """
        nothing = (None, "", "strict")  # older versions recorded every option, also of what is an extension now
        given = {name: value for name, value in record.items() if value is not None}
        given = {name: value for name, value in given.items() if name in OPTIONS or value not in nothing}
        ended = ended_options() if given.keys() - OPTIONS.keys() else {}
        given = {name: value for name, value in given.items() if name not in ended}
        table = options_for(given)
        for name in given:
            if name not in table:
                hint = "Install the extension, or the version of codex-multi-role, that the run was started with."
                raise UsageError(f"the run has an option that no installed extension adds: {name}", hint)
        return cls(**{name: value for name, value in given.items() if value or table[name].kind is not Path})

    def changed(self, **changes: Unpack[OptionKeywords]) -> RunOptions:
        """These options with some changed. Raises what `RunOptions` raises."""
        return RunOptions(**{**self.as_keywords(), **options_by_name(changes)})


class GivenPlaybook(str):
    """The name of a playbook that is written in Python: the mapping or the function ``given``."""

    given: Any

    @classmethod
    def named(cls, playbook: object) -> object:
        """``playbook`` as an option has it: a name or a path as a text. Raises `UsageError`."""
        if playbook is None or isinstance(playbook, str):
            return playbook
        if isinstance(playbook, os.PathLike):
            path = os.fspath(playbook)
            return path if is_playbook_file(path) else f"./{path}"
        if not isinstance(playbook, Mapping) and not callable(playbook):
            raise UsageError(f"playbook must be a name, a path, a mapping or a function, not {playbook!r}")
        kind = "mapping" if isinstance(playbook, Mapping) else "function"
        name = playbook.get("name", "") if isinstance(playbook, Mapping) else getattr(playbook, "__name__", "")
        self = cls(f"{name} (Python {kind})".lstrip())
        self.given = playbook
        return self


def is_playbook_file(playbook: str) -> bool:
    """Whether it is a path, with a separator or a suffix; otherwise it is a name to look up."""
    return "/" in playbook or bool(Path(playbook).suffix)


GROUPS: Mapping[str, type] = {"place": RunPlace, "answers": RunAnswers, "limits": RunLimits, "tests": RunTests}
OPTIONS: Mapping[str, Option] = {
    name: each for group in (RunOptions, *GROUPS.values()) for name, each in options_in(group).items()
}
"""Every option of a run by its name: the one table that all others are made from."""


@dataclass(frozen=True, kw_only=True)
class AddedOptions:
    """Base of a group of options that an extension adds to a run, a frozen dataclass like `RunPlace`.

    The entry point that registers one in the group ``codex_multi_role.run_options`` is loaded only for an option that
    is none of ours: importing its module must not be slow. ``ended``: what to do instead of options that earlier
    versions had and recorded.
    """

    section: ClassVar[Section]
    ended: ClassVar[Mapping[str, str]] = {}

    def check(self, options: RunOptions) -> None:
        """Raise `UsageError` for a wrong value, and for values that exclude others of the ``options``."""

    @staticmethod
    def bring_up_to_date(record: Mapping[str, Any], /) -> str:
        """Change what a run recorded that had an option that ``ended``; returns a note for whoever resumes it."""
        return ""


ADDED: Registry[type[AddedOptions]] = Registry("run option", "codex_multi_role.run_options", {})


def added_options() -> dict[str, Option]:
    """The options that extensions add, by name. Looks all of them up, which takes a while."""
    found = {name: each for group in ADDED.that_load() for name, each in options_in(group).items()}
    return {name: each for name, each in found.items() if name not in OPTIONS}


def bring_up_to_date(record: Mapping[str, Any]) -> list[str]:
    """Let extensions change a ``run.json`` that has an option of theirs that ended; returns notes about that."""
    given = record["options"].keys() - OPTIONS.keys()
    groups = [group for group in (ADDED.that_load() if given else ()) if given & group.ended.keys()]
    return [note for group in groups if (note := group.bring_up_to_date(record))]


def ended_options() -> dict[str, str]:
    """What to do instead of options that extensions no longer have, by name."""
    return {name: instead for group in ADDED.that_load() for name, instead in group.ended.items()}


def all_options() -> Mapping[str, Option]:
    """Ours, then those that extensions add."""
    return {**OPTIONS, **added_options()}


def options_for(names: Iterable[str]) -> Mapping[str, Option]:
    """The table that has these names, if any has; those of extensions are looked up only for another name."""
    return OPTIONS if OPTIONS.keys() >= set(names) else all_options()


def options_with(use: Use) -> dict[str, Option]:
    """The options that count there, by name."""
    return {name: each for name, each in all_options().items() if use in each.use}


def require_changeable(changes: Mapping[str, Any], use: Use, whose: str, recorded: Mapping[str, Any]) -> None:
    """Raise `UsageError` if one of the ``changes`` is to an option that ``whose`` run keeps as ``recorded``."""
    table = options_for(changes)
    keeps = (name for name in changes if name in table and use not in table[name].use)
    kept = sorted(name for name in keeps if name not in recorded or _plain(changes[name]) != recorded[name])
    if kept:
        raise UsageError(f"{whose} {', '.join(kept)}", "Start another run for that.")


def options_by_name(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options by name. ``given`` may have whole groups, as `dataclasses.replace` gives them, and `AddedOptions`.

    What differs from the default counts. Raises `UsageError` unless it is a mapping, and for another ``added``.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"changes must be a mapping with options, not {given!r}")
    values: dict[str, Any] = {}
    for name in GROUPS.keys() & given:
        values |= vars(given[name])
    added = given.get("added", {})
    values |= added if isinstance(added, Mapping) else _set_in(added)
    return values | {name: value for name, value in given.items() if name not in {*GROUPS, "added"}}


def _set_in(groups: object) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for group in groups if isinstance(groups, list | tuple) else (groups,):
        if not isinstance(group, AddedOptions):
            raise UsageError(f"added must be a list of AddedOptions of extensions, not {groups!r}")
        values |= {
            n: getattr(group, n) for n, each in options_in(type(group)).items() if getattr(group, n) != each.default
        }
    return values


def _checked(given: Mapping[str, object]) -> dict[str, Any]:
    """The value of every option of ours, and in ``added`` those of extensions. Raises `UsageError`."""
    given = options_by_name(given)
    table = options_for(given)
    for name in given:
        if name not in table:
            raise UsageError(*no_such("option of a run", name, table))
    given |= {"playbook": GivenPlaybook.named(given["playbook"])} if "playbook" in given else {}
    values = {name: table[name].checked(value) for name, value in given.items()}
    added = {name: values[name] for name in given if name not in OPTIONS and values[name] != table[name].default}
    return {name: values.get(name, each.default) for name, each in OPTIONS.items()} | {"added": added}


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value.resolve())
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class RunReport:
    """How a run ended. ``status``: succeeded, ended, failed, parked or interrupted; ``hint``: what to do next.

    ``result``: what it produced, ``{title, text?, file?, format, figures}`` as its flow declares it, or None.
    ``page``: its ``report.html``; None if it could not be written, for the reason in ``page_problem``.
    """

    run_id: str
    folder: Path
    status: str
    outcome: str
    reason: str
    exit_code: int
    hint: str
    totals: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    page: Path | None = None
    page_problem: str = ""


def recorded_report(folder: Path, record: Mapping[str, Any], hint: str = "", page: Path | None = None) -> RunReport:
    """How the run in ``folder`` ended, as its ``run.json`` says."""
    recorded = {name: record[name] for name in ("status", "outcome", "reason", "exit_code", "totals")}
    return RunReport(folder.name, folder, **recorded, hint=hint, result=record.get("result"), page=page)
