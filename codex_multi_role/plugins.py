"""Everything that an extension may import, beside the names of the package itself: what its parts are made of."""

from codex_multi_role.checks.contract import (
    CheckContext,
    CheckOptions,
    CheckResult,
    ResultPart,
    Settings,
    TimeLeft,
    at_most_own,
    declare_check,
    no_time,
)
from codex_multi_role.checks.data_file import read_document
from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult
from codex_multi_role.cli.lazy_group import LazyCommand
from codex_multi_role.cli.run_additions import RunAddition, RunFinder
from codex_multi_role.lifecycle.model_providers import ModelProviders, ModelSource, StandIn
from codex_multi_role.lifecycle.placement import Journals
from codex_multi_role.option import Range, Section, Use, option
from codex_multi_role.presentation.outcome import StatusWords
from codex_multi_role.presentation.recorded import PageOfRun
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.events import AddedEvent
from codex_multi_role.run_options import AddedOptions
from codex_multi_role.steps.check_context import load_settings
from codex_multi_role.steps.observers import TurnObserver

__all__ = [
    "AddedEvent",
    "AddedOptions",
    "CheckContext",
    "CheckOptions",
    "CheckResult",
    "Journals",
    "LazyCommand",
    "ModelProviders",
    "ModelSource",
    "PageOfRun",
    "Range",
    "ResultPart",
    "RunAddition",
    "RunFinder",
    "RunFolder",
    "Section",
    "Settings",
    "StandIn",
    "StatusWords",
    "TimeLeft",
    "Tool",
    "ToolContext",
    "ToolResult",
    "TurnObserver",
    "Use",
    "at_most_own",
    "declare_check",
    "load_settings",
    "no_time",
    "option",
    "read_document",
]
