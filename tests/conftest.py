"""What applies to every test: a pytest that it starts loads no plugin but those that it names, and no CI is about.

What is installed beside it here, hypothesis above all, would take most of its time, and hundreds of them are started.

Property tests run one of two profiles. ``gate`` draws the same examples every time, so that a red gate always means the
change at hand; ``--hypothesis-profile=search`` draws 100,000 new ones per property. A property whose examples are
costly asks for a fraction of ``settings().max_examples``.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from hypothesis import settings

# Bytecode is kept, whatever the environment says: otherwise each worker and each command that a test starts compiles
# all that it imports.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
pytest.register_assert_rewrite("tests.support")  # before anything of it is imported

from tests.support.browser import browser  # noqa: E402
from tests.support.console import WITHOUT_PLUGINS  # noqa: E402
from tests.support.databases import database_server, database_url  # noqa: E402
from tests.support.progress import Progress  # noqa: E402
from tests.support.rings import Rings  # noqa: E402
from tests.support.scripted_codex import real_codex, scripted_codex  # noqa: E402
from tests.support.shared_collection import SharedCollection  # noqa: E402

__all__ = ["browser", "database_server", "database_url", "real_codex", "scripted_codex"]

FOLDERS = itertools.count()
EXTENSIONS = find_spec("codex_multi_role.extensions") is not None
MODULE_NEEDS_EXTENSION = re.compile(r"^pytestmark = .*\bpytest\.mark\.extensions\b", re.MULTILINE)

settings.register_profile("gate", derandomize=True, database=None, deadline=None)
settings.register_profile("search", max_examples=100_000, deadline=None)
settings.load_profile("gate")

# A shell starts background jobs with some signals ignored, and so does nohup. Every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, lambda *_: None)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the option
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run in parallel by default, unless the command line names files or folders."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ  # or below one
    if config.args_source is config.ArgsSource.TESTPATHS and config.option.numprocesses is None and not is_worker:
        config.option.numprocesses = "auto"


def pytest_xdist_auto_num_workers() -> int:
    """One more than the cores, because tests wait for processes and disks; each worker collects all tests, however."""
    return 1 + (os.cpu_count() or 1)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Rings())
    config.pluginmanager.register(SharedCollection() if hasattr(config, "workerinput") else Progress())


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without extensions, a module whose ``pytestmark`` says that it needs one is not imported."""
    if EXTENSIONS or collection_path.suffix != ".py":
        return None
    return bool(MODULE_NEEDS_EXTENSION.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not EXTENSIONS:
        for item in items:
            if item.get_closest_marker("extensions"):
                item.add_marker(pytest.mark.skip(reason="no extension is installed"))


def pytest_collection_finish() -> None:
    """All that is loaded by now stays: looking for garbage in it took every twelfth second of a worker."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's; it would look through the folders of all earlier tests for a free name, 3 ms of each late test."""
    name = re.sub(r"\W", "_", request.node.name)[:26]
    folder = tmp_path_factory.getbasetemp() / f"{name}_{next(FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _as_anywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    programs = tmp_path_factory.mktemp("programs")
    # A shell script that Codex runs at each start, for the system's name; without it, Codex reads /etc/os-release.
    (programs / "lsb_release").symlink_to(which("false") or "/bin/false")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", str(programs), prepend=os.pathsep)
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))  # no settings of the developer's
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))  # no copies beside the developer's
        patched.setenv(WITHOUT_PLUGINS, "1")
        patched.delenv("GITHUB_ACTIONS", raising=False)  # it adds annotations to what commands say
        yield
