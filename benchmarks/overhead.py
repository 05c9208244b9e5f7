"""What profiling costs the run: ``python -m benchmarks.overhead`` (``--table`` writes the page).

Steps are compared by turns within one process, for two runs of the same script differ by more than
what is to be measured. Commands are compared by turns as well.
"""

import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks import commands, pages
from benchmarks.turns import by_turns

HERE = Path(__file__).parent
PROFILE = (*commands.TFDOCTOR, "profile", "--no-report")

STEPS = [("fit", 64), ("loop", 64), ("call", 64), ("eager", 64), ("fit", 1024), ("loop", 1024)]
"""Loops, and how wide their layers are: steps of under a millisecond, and of some ten."""

TRACED = [("loop", 64), ("call", 64), ("eager", 64), ("loop", 700), ("call", 700), ("loop", 1024)]
"""Inside the window, also steps of two to three milliseconds."""

PROCESSES = 3
"""Inside the window, processes differ by more than windows do: so many are measured."""

STARTS = 15


def worker(*arguments: object) -> Any:
    """Run one measurement in a process of its own."""
    command = (sys.executable, "-m", "benchmarks.overhead_worker", *map(str, arguments))
    return json.loads(commands.output(*command, folder=HERE.parent).splitlines()[-1])


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
    return f"| {style} | {base:.2f} ms | {more:+.2f} % ({low:+.2f} to {high:+.2f}) | {micro:+.1f} us |"


def starts() -> str:
    """Return what tfdoctor adds to the start and the end of a script that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        script, outs = Path(folder, "nothing.py"), itertools.count()
        script.touch()

        def ours() -> None:
            out = f"{folder}/{next(outs)}"
            commands.output(*PROFILE, "--sample-every", "0", "--out", out, script)

        pairs = by_turns([lambda: commands.output(sys.executable, script), ours], STARTS)
    more, low, high = spread([(with_it - without) * 1e3 for without, with_it in pairs])
    plain = median(without for without, _ in pairs) * 1e3
    return f"{more:.0f} ms ({low:.0f} to {high:.0f}) more than the {plain:.0f} ms of Python itself"


def inside_python() -> str:
    """Return what the hook costs a Python that trains nothing, such as a worker that loads data."""
    site = HERE.parent / "src" / "tfdoctor" / "capture" / "site"
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "plan.py")
        plan.write_text("import os, json; print(json.dumps(dict(os.environ)))")
        out = Path(folder, "out")
        words = ("--sample-every", "0", "--out", out, "--", sys.executable, plan)
        environment = json.loads(commands.output(*PROFILE, *words))
        nothing = partial(commands.output, sys.executable, "-c", "")
        pairs = by_turns([nothing, partial(nothing, variables=environment)], STARTS)
    more, low, high = spread([(with_it - without) * 1e3 for without, with_it in pairs])
    return f"{more:.1f} ms ({low:.1f} to {high:.1f}); the hook is {site.name}/sitecustomize.py"


def sampler() -> Iterator[str]:
    """Yield what each sampler costs, as the recording of a real run says."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        script = HERE / "loops" / "fit_arrays.py"
        commands.output(*PROFILE, "--out", out, script)
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
    yield f"Measured on {pages.today()} on {pages.machine()}."
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
    pages.publish(__doc__, "overhead.md", "figures", figures())


if __name__ == "__main__":
    main()
