"""How runs end that end while they are traced: ``python -m benchmarks.endings RUNS``.

Repeats short scripts, alone and under tfdoctor by turns, and counts their exit codes. Two workers exchange
gradients (with what makes TensorFlow's own profiler crash); one worker ends in every way that Python knows.
``--windows N`` starts and stops TensorFlow's profiler N times in two workers, without tfdoctor or with its
protection: the fault itself, some hundred times faster.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.commands import QUIET, TFDOCTOR, ended, parser

WORKER = Path(__file__).with_name("endings_worker.py")
PROFILE = (*TFDOCTOR, "profile", "--no-report", "--quiet")

ENDINGS = ("return", "sys.exit", "exception", "os._exit", "thread")
LIMIT_S = 300

SIGNALED = 128
"""What a shell adds to the number of the signal that has ended a process."""


def ports(count: int) -> list[str]:
    """Return so many free addresses of this machine."""
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("localhost", 0))
    addresses = [f"localhost:{listener.getsockname()[1]}" for listener in sockets]
    for listener in sockets:
        listener.close()
    return addresses


def two_workers(*arguments: str) -> int:
    """Run both workers and return the code that is furthest from success."""
    addresses = ports(2)
    workers = []
    for index in (0, 1):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
        command = [sys.executable, str(WORKER), *arguments]
        workers.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
    codes = [worker.wait(LIMIT_S) for worker in workers]
    return max(code if code >= 0 else SIGNALED - code for code in codes)


def code(command: list[str]) -> int:
    """Run a command and return its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        words = (word.replace("OUT", folder) for word in command)
        found = ended(*words, limit_s=LIMIT_S, read=False).returncode
    return found if found >= 0 else SIGNALED - found


def commands(ending: str) -> dict[str, list[str]]:
    """Return how to run a script alone and under tfdoctor."""
    words = [sys.executable, str(WORKER), ending]
    if ending == "two workers":
        words = [sys.executable, "-m", "benchmarks.endings", "--job"]
    profile = [*PROFILE, "--warmup", "1", "--out", "OUT/out", "--", *words]
    return {"alone": words, "tfdoctor": profile}


def main() -> None:
    """Print a table: the exit codes of each script and how often they came."""
    options = parser(__doc__)
    options.add_argument("runs", type=int, nargs="?", default=100)
    options.add_argument("--windows", type=int, help="stop the profiler so often in each worker")
    options.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.job:
        sys.exit(two_workers("collectives"))
    print("| script | how | exit code: runs |\n|---|---|---|")
    if chosen.windows:
        os.environ.update(QUIET)
        for how in ("alone", "protected"):
            codes = Counter(two_workers(how, str(chosen.windows)) for _ in range(chosen.runs))
            print(f"| {chosen.windows} windows, two workers | {how} | {dict(codes)} |", flush=True)
        return
    for ending in ("two workers", *ENDINGS):
        counts: dict[str, Counter[int]] = {"alone": Counter(), "tfdoctor": Counter()}
        for _ in range(chosen.runs):
            for how, command in commands(ending).items():
                counts[how][code(command)] += 1
        for how, codes in counts.items():
            print(f"| {ending} | {how} | {dict(codes)} |", flush=True)


if __name__ == "__main__":
    main()
