"""What documenting a large repository takes: 600 files in 200 batches, eight at once, answered from the playbook.

    python benchmarks/document.py [--files 600] [--concurrency 8] [--repo DIR]

Prints wall time, and the memory of our own process (Codex not counted) as batches end and at its peak. Exit code 1
where it grew by more than a tenth from a fifth of the batches to all of them.
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

MEGABYTE = 1 << 20
MEMORY_MAY_GROW = 1.10
FEWEST_BATCHES = 5


def document(folder: Path, repo: Path, concurrency: int) -> tuple[list[float], float]:
    """Run the flow; the megabytes our process held whenever a batch ended, and at most."""
    inputs = ["--input", f"repo={repo}", "--input", f"concurrency={concurrency}"]
    flags = ["--flow", "document", "--playbook", "document", "--yes", "--json", *inputs]
    command = [sys.executable, "-m", "codex_multi_role", *flags]
    held, peak = [], 0.0
    with psutil.Popen(command, cwd=folder, stdout=subprocess.PIPE) as child:
        for line in child.stdout:
            now = child.memory_info().rss / MEGABYTE
            peak = max(peak, now)
            event = json.loads(line)
            if (
                event["type"] == "state_changed"
                and event["unit"].startswith("batch_execution.")
                and event["state"] == "COMPLETED"
            ):
                held.append(now)
    if child.returncode != 0:
        raise SystemExit(f"the run ended with exit code {child.returncode}")
    return held, peak


def report(held: list[float], peak: float) -> bool:
    """Print what was held; returns whether it stayed flat."""
    if len(held) < FEWEST_BATCHES:
        raise SystemExit(f"{len(held)} batches tell nothing about growth: it takes {FEWEST_BATCHES} (--files)")
    for share in (1, 2, 3, 4, 5):
        batch = len(held) * share // 5
        print(f"batch {batch:>5}  {held[batch - 1]:.0f} MB")
    growth = held[-1] / held[len(held) // 5 - 1]
    print(f"peak         {peak:.0f} MB")
    print(f"growth       {growth:.2f} (at most {MEMORY_MAY_GROW:.2f})")
    return growth <= MEMORY_MAY_GROW


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
        held, peak = document(folder, repo.resolve(), options.concurrency)
        told = json.loads((folder / "runs/latest/document.json").read_text())
        print(f"files        {told['files']}")
        print(f"batches      {len(told['batches'])}")
        print(f"quality      {told['quality']['score']:.2f}")
        print(f"seconds      {time.monotonic() - started:.1f}")
        sys.exit(0 if report(held, peak) else 1)


if __name__ == "__main__":
    main()
