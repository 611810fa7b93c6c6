"""What documenting a large repository takes: 600 files in 200 batches, eight at once, answered from the playbook.

    python benchmarks/document.py [--files 600] [--concurrency 8] [--repo DIR]

Prints wall time, and the memory of our own process (Codex not counted) at every tenth of the run and at its peak.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from code_graph import write_repository

LOOK_SECONDS = 0.5
MEGABYTE = 1 << 20


def document(folder: Path, repo: Path, concurrency: int) -> list[int]:
    """Run the flow; the bytes our process held, look by look."""
    inputs = ["--input", f"repo={repo}", "--input", f"concurrency={concurrency}"]
    flags = ["--flow", "document", "--playbook", "document", "--yes", "--quiet", *inputs]
    process = psutil.Popen([sys.executable, "-m", "codex_multi_role", *flags], cwd=folder, stdout=subprocess.DEVNULL)
    held = []
    while process.poll() is None:
        held.append(process.memory_info().rss)
        time.sleep(LOOK_SECONDS)
    if process.returncode != 0:
        raise SystemExit(f"the run ended with exit code {process.returncode}")
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=600)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--repo", type=Path, help="document this one instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        folder.mkdir()
        repo = options.repo or Path(name) / "repo"
        if options.repo is None:
            write_repository(repo, options.files, 100)
        started = time.monotonic()
        held = document(folder, repo.resolve(), options.concurrency)
        told = json.loads((folder / "runs/latest/document.json").read_text())
        print(f"files      {told['files']}")
        print(f"batches    {len(told['batches'])}")
        print(f"quality    {told['quality']['score']:.2f}")
        print(f"seconds    {time.monotonic() - started:.1f}")
        tenths = [held[len(held) * tenth // 10] // MEGABYTE for tenth in range(10)]
        print(f"memory     {' '.join(map(str, tenths))} MB")
        print(f"peak       {max(held) // MEGABYTE} MB")


if __name__ == "__main__":
    main()
