"""Workers of pytest-xdist share what collection costs most: compiling test modules with rewritten asserts.

All workers collect all modules, in the same order at the same time, so that each would compile all of them.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest


class SharedCollection:
    """The plugin of a worker: it first imports its share of the modules, whose bytecode the other workers then find."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        config: Any = session.config
        number, count = int(config.workerinput["workerid"].removeprefix("gw")), config.workerinput["workercount"]
        folders = [config.invocation_params.dir / each for each in config.args]
        paths = sorted({path for folder in folders for path in folder.rglob("test_*.py")})
        for path in paths[number::count]:
            with suppress(Exception, pytest.skip.Exception), warnings.catch_warnings():  # collection reports them
                warnings.simplefilter("error")
                import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))
