"""What profiling costs the run: ``python -m benchmarks.overhead`` (``--table`` writes the page).

Steps are compared by turns within one process, for two runs of the same script differ by more than
what is to be measured. Commands are compared by turns as well.
"""

import argparse
import datetime as dt
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tfdoctor.capture.machine import host

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "explanation" / "overhead.md"
MARKED = re.compile(r"(<!-- figures -->\n).*?(<!-- /figures -->)", re.DOTALL)
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
TFDOCTOR = (sys.executable, "-m", "tfdoctor", "profile", "--no-report")

STEPS = [("fit", 64), ("loop", 64), ("call", 64), ("eager", 64), ("fit", 1024), ("loop", 1024)]
"""Loops, and how wide their layers are: steps of under a millisecond, and of some ten."""

TRACED = [("loop", 64), ("call", 64), ("eager", 64), ("loop", 700), ("call", 700), ("loop", 1024)]
"""Inside the window, also steps of two to three milliseconds."""

PROCESSES = 3
"""Inside the window, processes differ by more than windows do: so many are measured."""

STARTS = 15


def worker(*arguments: object) -> Any:
    """Run one measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.overhead_worker", *map(str, arguments)]
    environment = {**os.environ, **QUIET}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=HERE.parent
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def spread(values: list[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles."""
    low, middle, high = quantiles(values, method="inclusive")
    return middle, low, high


def steps(kind: str, style: str, width: int) -> str:
    """Return a table's row: what our side of the pairs takes more than the other."""
    processes = PROCESSES if kind == "inside" else 1
    pairs = [pair for _ in range(processes) for pair in worker(kind, style, width)]
    base = median(without for _, without in pairs)
    more, low, high = spread([(ours - without) / without * 100 for ours, without in pairs])
    micro = median((ours - without) * 1e3 for ours, without in pairs)
    return (
        f"| {style} | {base:.2f} ms | {more:+.2f} % ({low:+.2f} to {high:+.2f}) | {micro:+.1f} us |"
    )


def starts() -> str:
    """Return what tfdoctor adds to the start and the end of a script that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "nothing.py")
        script.write_text("")
        plain, ours = [], []
        for number in range(STARTS):
            plain.append(seconds([sys.executable, str(script)]))
            out = f"{folder}/{number}"
            ours.append(seconds([*TFDOCTOR, "--sample-every", "0", "--out", out, str(script)]))
    more, low, high = spread([(a - b) * 1e3 for a, b in zip(ours, plain, strict=True)])
    return f"{more:.0f} ms ({low:.0f} to {high:.0f}) more than the {median(plain) * 1e3:.0f} ms of Python itself"


def inside_python() -> str:
    """Return what the hook costs a Python that trains nothing, such as a worker that loads data."""
    site = HERE.parent / "src" / "tfdoctor" / "capture" / "site"
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "plan.py")
        plan.write_text("import os, json; print(json.dumps(dict(os.environ)))")
        out = Path(folder, "out")
        shown = subprocess.run(
            [*TFDOCTOR, "--sample-every", "0", "--out", str(out), "--", sys.executable, str(plan)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        environment = json.loads(shown.stdout)
        plain, ours = [], []
        for _ in range(STARTS):
            plain.append(seconds([sys.executable, "-c", ""]))
            ours.append(seconds([sys.executable, "-c", ""], environment))
    more, low, high = spread([(a - b) * 1e3 for a, b in zip(ours, plain, strict=True)])
    return f"{more:.1f} ms ({low:.1f} to {high:.1f}); the hook is {site.name}/sitecustomize.py"


def seconds(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Return how long a command takes."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - begun


def sampler() -> Iterator[str]:
    """Yield what each sampler costs, as the recording of a real run says."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        script = HERE / "loops" / "fit_arrays.py"
        subprocess.run(
            [*TFDOCTOR, "--out", str(out), str(script)],
            check=True, capture_output=True, env={**os.environ, **QUIET},
        )  # fmt: skip
        manifest = json.loads((out / "tfdoctor.json").read_text())
    first, last = (manifest["clock"][at]["monotonic_ns"] for at in (0, -1))
    for sampler in manifest["samplers"]:
        if sampler["count"]:
            share = sampler["cost_ms"] / ((last - first) / 1e6) * 100
            yield (
                f"{sampler['name']}: {sampler['cost_ms'] / sampler['count']:.2f} ms a sample, "
                f"{share:.2f} % of one core"
            )


def programs() -> Iterator[str]:
    """Yield what it costs to describe two large models."""
    for name in ("resnet50", "transformer"):
        program = worker("program", name)
        yield (
            f"{name}: {program['operations']} operations, {program['seconds']:.2f} s of CPU, "
            f"{program['bytes'] / 1e6:.2f} MB"
        )


HEAD = "| loop | step | more | that is |\n|---|---|---|---|"


def figures() -> Iterator[str]:
    """Yield the page's part with figures, line by line."""
    machine = host()
    today = dt.datetime.now(tz=dt.UTC).date()
    yield f"Measured on {today} on {machine.cores_logical} cores of {machine.cpu_model}."
    yield "\n### Outside the traced window, against TensorFlow without any hook\n"
    yield HEAD
    yield from (steps("outside", style, width) for style, width in STEPS)
    yield "\n### Inside the window, against TensorFlow's profiler alone\n"
    yield HEAD
    yield from (steps("inside", style, width) for style, width in TRACED)
    yield "\n### Once\n"
    yield f"- the whole command, start to end: {starts()}"
    yield f"- each Python process that trains nothing: {inside_python()}"
    yield from (f"- sampler {line}" for line in sampler())
    yield from (f"- describing {line}" for line in programs())


def main() -> None:
    """Print the figures, and write them into the page when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help=f"write them into {PAGE.name}")
    wanted = parser.parse_args().table
    lines = []
    for line in figures():
        print(line, flush=True)
        lines.append(line)
    if wanted:
        text = PAGE.read_text()
        PAGE.write_text(MARKED.sub(lambda m: m[1] + "\n".join(lines) + "\n" + m[2], text))


if __name__ == "__main__":
    main()
