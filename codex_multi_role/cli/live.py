"""The live table of a run on a terminal, and its last state as a picture."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from rich.console import Console, RenderableType
from rich.live import Live

from codex_multi_role.cli.drawing import render
from codex_multi_role.cli.progress import Progress, Record

REFRESHES_PER_SECOND = 4
PICTURE_WIDTH = 110
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""What rich puts into a picture to load its font from the network; a picture of a run asks nobody for anything."""


@contextmanager
def live_table(progress: Progress) -> Iterator[Callable[[Record], None]]:
    """Show ``progress`` on stderr, a terminal, while events come in; the last state stays in the scrollback.

    Events come on the threads of the run, the terminal is drawn from a thread of its own.
    """
    console = Console(stderr=True)
    lock = threading.Lock()

    def view() -> RenderableType:
        with lock:
            return render(progress, datetime.now(UTC).isoformat(), console.width)

    live = Live(console=console, get_renderable=view, refresh_per_second=REFRESHES_PER_SECOND, redirect_stdout=False)

    def take(record: Record) -> None:
        with lock:
            progress.apply(record)
        if not live.is_started:  # not before: what fails at once should leave no empty table behind
            with suppress(OSError):  # the terminal may go away; that must not end the run
                live.start()

    try:
        yield take
    finally:
        with suppress(OSError):
            live.stop()


def picture(progress: Progress) -> str:
    """The view after the last event of ``progress``, as SVG."""
    console = Console(
        record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(render(progress, progress.at, PICTURE_WIDTH))
    drawn = console.export_svg(title=f"codex-multi-role: run {progress.run_id}")
    return WEB_FONT.sub("", drawn)
