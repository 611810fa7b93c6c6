"""Runs the drivers of `compare.py`: interleaved for the times, once more for memory and what reaches the model."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
from comparison_drivers import Driver
from comparison_environments import NotMeasured
from comparison_model import ComparisonModel
from raw import kept_folder

JOB_SECONDS = 300.0
SAMPLE_SECONDS = 0.02
LAST_WORDS = 300


@dataclass(frozen=True)
class Job:
    """``rounds``: measured rounds of all drivers, beside one that is not counted."""

    title: str
    kind: str
    latency_seconds: float
    requests: int
    rounds: int


@dataclass
class Footprint:
    """The highest sum of resident memory of a process tree, as sampled; the requests it made, and their bytes."""

    peak_bytes: int = 0
    requests: int = 0
    sent_bytes: int = 0
    left_loopback: set[str] = field(default_factory=set)


def measure_times(job: Job, drivers: Sequence[Driver], model: ComparisonModel) -> dict[str, list[float] | str]:
    """The seconds of each driver, round by round, or its failure. Drivers take turns; a failed one is not run again."""
    seconds: dict[str, list[float]] = {driver.name: [] for driver in drivers}
    failures: dict[str, str] = {}
    for _ in range(job.rounds + 1):
        for driver in drivers:
            if driver.name not in failures:
                try:
                    seconds[driver.name].append(run(job, driver, model))
                except NotMeasured as error:
                    failures[driver.name] = str(error)
    return {name: failures.get(name) or each[1:] for name, each in seconds.items()}


def run(job: Job, driver: Driver, model: ComparisonModel, footprint: Footprint | None = None) -> float:
    """The wall seconds of a driver's whole process. Raises `NotMeasured` unless it did the job."""
    model.restart(job.latency_seconds)
    folder = driver.folders.get(job.kind) or kept_folder()
    with tempfile.TemporaryFile() as words:
        began = time.perf_counter()
        child = subprocess.Popen(
            driver.command(job.kind, model.base_url), cwd=folder, stdout=words, stderr=subprocess.STDOUT
        )
        try:
            _wait(child, footprint)
            seconds = time.perf_counter() - began
        finally:
            _end(child)
        if child.returncode != driver.exit_codes.get(job.kind, 0):
            words.seek(0)
            said = " ".join(words.read().decode(errors="replace").split())[-LAST_WORDS:]
            raise NotMeasured(f"{job.title} ended with {child.returncode}: {said}")
    if model.requests < job.requests:
        raise NotMeasured(f"{job.title} asked the model {model.requests} times instead of {job.requests}")
    if footprint is not None:
        footprint.requests, footprint.sent_bytes = model.requests, model.received_bytes
    return seconds


def _wait(child: subprocess.Popen[bytes], footprint: Footprint | None) -> None:
    try:
        if footprint is None:
            child.wait(JOB_SECONDS)
            return
        deadline = time.monotonic() + JOB_SECONDS
        while child.poll() is None:
            _sample(child.pid, footprint)
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(child.args, JOB_SECONDS)
            time.sleep(SAMPLE_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NotMeasured(f"not done within {JOB_SECONDS:.0f} s") from error


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that is still there with all its processes."""
    if child.poll() is None:
        for process in _tree(child.pid):
            process.kill()
        child.wait(JOB_SECONDS)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _sample(pid: int, footprint: Footprint) -> None:
    resident = 0
    for process in _tree(pid):
        try:
            resident += process.memory_info().rss
            remote = {connection.raddr.ip for connection in process.net_connections("inet") if connection.raddr}
        except psutil.Error:  # it ended meanwhile
            continue
        footprint.left_loopback |= {address for address in remote if not address.startswith(("127.", "::1"))}
    footprint.peak_bytes = max(footprint.peak_bytes, resident)
