"""Processes whose clock is wrong: a small library in front of the C library's changes the time of day."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += SECONDS;
    return result;
}
"""


def wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    """Variables for a process whose clock is wrong by that. Raises ``FileNotFoundError`` without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("cc")
    library = folder / f"clock{seconds:+}.so"
    source = library.with_suffix(".c")
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", f"-DSECONDS=({seconds})", "-o", library, source, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}
