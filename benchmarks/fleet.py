"""What a fleet costs, and what happens when a worker is killed: ``python -m benchmarks.fleet [COUNT ...]``.

Recordings are copies of the samples with other durations. A real Dask scheduler and real workers run as processes
of this machine, with one worker and then with two; on the last run with two, one of them is killed (SIGKILL) in the
middle. Every recording must then have exactly one row, and the table must equal that of the single worker. Ratios
count: both runs are of the same machine within minutes.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.fleet_recordings import recordings

DASK = str(Path(sys.executable).parent / "dask")

COUNTS = (100, 1000)

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

Process = subprocess.Popen[bytes]


@contextlib.contextmanager
def scheduler_alone(folder: Path) -> Iterator[tuple[str, Process]]:
    """Run a scheduler without workers; yield its address and its process."""
    file = folder / f"scheduler-{time.monotonic_ns()}.json"
    words = ["--scheduler-file", str(file), "--port", "0", "--no-dashboard"]
    with contextlib.ExitStack() as stack:
        process = start_process(stack, DASK, "scheduler", *words)
        until(lambda: file.is_file() and file.read_text().rstrip().endswith("}"), 60)  # it is there before its text
        yield json.loads(file.read_text())["address"], process


def worker_command(address: str) -> list[str]:
    """Return the command that runs a worker with one thread."""
    return [DASK, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[Process]]]:
    """Run a scheduler and its workers; yield its address and the workers."""
    with contextlib.ExitStack() as stack:
        address, _ = stack.enter_context(scheduler_alone(folder))
        command = [*worker_command(address), "--local-directory", str(folder)]
        yield address, [start_process(stack, *command) for _ in range(workers)]


def start_process(stack: contextlib.ExitStack, *command: str) -> Process:
    """Start a process that ends with the stack."""
    process = stack.enter_context(subprocess.Popen(command, **QUIET))  # type: ignore[call-overload]  # its overloads
    stack.callback(process.kill)
    return process


def until(condition: object, seconds: float) -> None:
    """Wait for a condition.

    Raises:
        TimeoutError: it did not become true.
    """
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]  # a function without arguments
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


def examine(source: Path, out: Path, address: str, kill: Process | None = None) -> float:
    """Examine all recordings of a folder on a cluster; return the seconds. Kill a worker when half are done.

    Raises:
        RuntimeError: the command failed.
    """
    total = sum(1 for _ in source.glob("*/*"))
    words = ["-m", "tfdoctor", "fleet", str(source), "--out", str(out), "--no-reports"]
    began = time.monotonic()
    command = subprocess.Popen([sys.executable, *words, "--on", address], **QUIET)  # type: ignore[call-overload]  # same
    if kill is not None:
        until(lambda: rows(out / "runs.jsonl") >= total // 2, 3600)
        os.kill(kill.pid, signal.SIGKILL)
        print(f"killed a worker after {rows(out / 'runs.jsonl')} of {total} rows", flush=True)
    if command.wait():
        raise RuntimeError(f"tfdoctor fleet failed with code {command.returncode}")
    return time.monotonic() - began


def rows(path: Path) -> int:
    """Return how many rows a table has."""
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def same(first: Path, second: Path, count: int) -> bool:
    """Say whether two tables have one row for each recording, and the same rows."""
    tables = [list(map(json.loads, path.read_text().splitlines())) for path in (first, second)]
    places = [{row["place"] for row in table} for table in tables]
    whole = all(len(table) == len(at) == count for table, at in zip(tables, places, strict=True))
    return whole and tables[0] == tables[1] and not any(row["failure"] for row in tables[0])


def main(counts: tuple[int, ...]) -> None:
    """Print the table, and the result of killing a worker."""
    folder = Path(tempfile.mkdtemp(prefix="tfdoctor-fleet-"))
    print("| recordings | one worker | two workers | ratio | per recording, two workers |")
    print("|--:|--:|--:|--:|--:|", flush=True)
    try:
        for count in counts:
            source = folder / f"runs-{count}"
            for _ in recordings(source, count):
                continue
            with cluster(folder, 1) as (address, _):
                one = examine(source, folder / f"one-{count}", address)
            with cluster(folder, 2) as (address, _):
                two = examine(source, folder / f"two-{count}", address)
            cells = f"{one:.0f} s | {two:.0f} s | {one / two:.2f} | {1000 * two / count:.0f} ms"
            print(f"| {count:,} | {cells} |", flush=True)
        with cluster(folder, 2) as (address, workers):
            examine(source, folder / "killed", address, kill=workers[0])
        equal = same(folder / f"one-{count}" / "runs.jsonl", folder / "killed" / "runs.jsonl", count)
        print("the tables of one worker and of two, one of them killed, are", "equal" if equal else "DIFFERENT")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or COUNTS)
