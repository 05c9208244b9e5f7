"""A plain timer: runs an unmodified training script and prints its step time, without any profiler.

``python -m benchmarks.strangers.timer script.py [ARGUMENT ...]`` prints one line of JSON. A step starts
where the most frequent outermost ``tf.function`` is called, or, in a script that calls none often enough,
where an eager optimizer update or ``GradientTape.gradient`` starts. The time between two starts is a step;
the first ten are left out. ``--seconds`` ends the script that long after them.
"""

import argparse
import functools
import itertools
import json
import os
import runpy
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARMUP = 10
"""Steps left out at the start: graphs are built, buffers filled, parallelism tuned."""

BLOCKS = 20

ENOUGH = 15
"""Calls of a function, below which it is not taken as the step."""


class Marks:
    """The start times in s of each outermost call, by kind and function."""

    def __init__(self) -> None:
        self.starts: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.depth = 0
        self.seconds = 0.0  # of timed steps, after which the script is ended; 0: never
        self.function = ""  # the step, if it is known

    def note(self, kind: str, original: Callable[..., Any], name: Callable[[Any], str]) -> Any:
        """Return `original` wrapped so that its outermost calls are noted."""

        @functools.wraps(original)
        def noted(this: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.depth:
                self._start(kind, name(this))
            self.depth += 1
            try:
                return original(this, *args, **kwargs)
            finally:
                self.depth -= 1

        return noted

    def key(self, name: str, identity: int) -> str:
        """Return the name of a function here: that of a known step alone, for ``compile`` makes another one."""
        return name if name == self.function else f"{name}@{identity}"

    def _start(self, kind: str, name: str) -> None:
        starts = self.starts[kind, name]
        starts.append(time.perf_counter())
        timed = self.seconds and name.startswith(self.function) and len(starts) >= 3 * WARMUP
        if timed and starts[-1] - starts[WARMUP] >= self.seconds:
            finish(self)
            os._exit(0)

    def steps(self, function: str) -> tuple[str, list[float]]:
        """Return the name and the starts of the step: of `function` if given, else of the most frequent."""
        for kind in ("function", "update", "gradient"):
            calls = {
                name: starts
                for (of_kind, name), starts in self.starts.items()
                if of_kind == kind and name.startswith(function) and len(starts) >= ENOUGH
            }
            if calls:
                name = max(calls, key=lambda name: len(calls[name]))
                return name, calls[name]
            if kind == "function" and function:
                break
        return "", []


def install(marks: Marks) -> None:
    """Note calls of ``tf.function``, optimizer updates and gradients from now on."""
    import keras
    import tensorflow as tf
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    function = polymorphic_function.Function
    function.__call__ = marks.note(
        "function", function.__call__, lambda this: marks.key(this.python_function.__name__, id(this))
    )
    optimizer = keras.optimizers.Optimizer
    optimizer.apply = marks.note("update", optimizer.apply, lambda this: str(id(this)))
    tape = tf.GradientTape
    tape.gradient = marks.note("gradient", tape.gradient, lambda _: "")


def summary(name: str, starts: list[float]) -> dict[str, Any]:
    """Return the median and the mean step in ms, of all steps and of the second half, in which caches are full."""
    steady = starts[WARMUP:] if len(starts) > 2 * WARMUP else starts[len(starts) // 2 :]
    steps = [1e3 * (after - before) for before, after in itertools.pairwise(steady)]
    if not steps:
        return {"step": name.split("@", maxsplit=1)[0], "steps": 0}
    return {
        "step": name.split("@", maxsplit=1)[0],
        "steps": len(steps),
        "median_ms": round(statistics.median(steps), 3),
        "mean_ms": round(statistics.mean(steps), 3),
        "late_median_ms": round(statistics.median(steps[len(steps) // 2 :]), 3),
        "late_mean_ms": round(statistics.mean(steps[len(steps) // 2 :]), 3),
        "late_pace_ms": round(pace(steps[len(steps) // 2 :]), 3),
    }


def pace(steps: list[float]) -> float:
    """Return the median over some twenty blocks of steps of the block's mean.

    The median of single steps leaves out what every third step has, the mean contains what happens between epochs.
    """
    length = max(1, len(steps) // BLOCKS)
    starts = range(0, len(steps) - length + 1, length)
    return statistics.median(statistics.mean(steps[at : at + length]) for at in starts)


def finish(marks: Marks) -> None:
    """Print the step's times."""
    sys.stdout.flush()
    os.write(1, (json.dumps(summary(*marks.steps(marks.function))) + "\n").encode())


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--function", default="", metavar="NAME", help="the function that is the step")
    parser.add_argument("--seconds", type=float, default=0.0, help="end the script after these")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    marks = Marks()
    marks.seconds, marks.function = options.seconds, options.function
    install(marks)
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = str(Path(options.script).resolve().parent)
    try:
        runpy.run_path(options.script, run_name="__main__")
    finally:
        finish(marks)


if __name__ == "__main__":
    main()
