"""Runs a script alone, with a plain stopwatch, or under tfdoctor, and returns what came of it."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.loops.stopwatch import read

LOOPS = Path(__file__).parents[1] / "loops"

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}

WARMUP = 20
"""Steps that do not count: graphs are built, buffers filled, parallelism tuned."""

BLOCK = 10
"""Steps whose mean is one reading. A pipeline on two threads gives two batches at once, so that single
steps are now short, now long; the median over blocks is a typical step, and outliers do not count."""


class FailedError(RuntimeError):
    """A script of the corpus or tfdoctor failed: its last lines."""


def run(*command: str, **environment: str) -> None:
    """Run a command among the scripts' surroundings.

    Raises:
        FailedError: its exit code was not 0.
    """
    env = os.environ | QUIET | {"PYTHONPATH": str(LOOPS)} | environment
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise FailedError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-600:]}")


def step_ms(*command: str) -> float:
    """Run a script alone and return its typical step in ms, by the stopwatch in the script.

    Raises:
        FailedError: the script failed, or took no steps.
    """
    with tempfile.TemporaryDirectory() as folder:
        ticks = Path(folder, "ticks")
        run(sys.executable, *command, STEP_TIMES=str(ticks))
        spans, _ = read(ticks)
    if not spans:
        raise FailedError(f"{' '.join(command)}: no steps")
    # A span may hold several steps: it is then a block of its own.
    size = max(1, BLOCK // spans[0].steps)
    steady = [span.ms for span in spans[min(WARMUP // spans[0].steps, len(spans) // 3) :]]
    last = max(1, len(steady) - size + 1)
    return statistics.median(statistics.mean(steady[i : i + size]) for i in range(0, last, size))


@dataclass(frozen=True, slots=True)
class Promise:
    """A finding that promises a saving: what share of the step, and whether at most."""

    share: float
    at_most: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What tfdoctor said of a script: the step that it saw in ms, what it found and what it promises.

    A finding without a figure, because the step model does not hold, is found and promises nothing. One
    that says "saves nothing until others are mended" is not found: it asks for no change yet.
    """

    step_ms: float | None
    found: AbstractSet[str]
    promises: Mapping[str, Promise]
    trust: str

    @classmethod
    def of(cls, script: Path, out: Path) -> Self:
        """Profile a script into a folder.

        Raises:
            FailedError: there is no report.
        """
        command = ("-m", "tfdoctor", "profile", "--format", "json", "--out", str(out))
        run(sys.executable, *command, str(script))
        return cls.read(out)

    @classmethod
    def again(cls, out: Path) -> Self:
        """Diagnose a recording anew, by the rules as they are now.

        Raises:
            FailedError: it cannot be diagnosed.
        """
        run(sys.executable, "-m", "tfdoctor", "report", "--format", "json", str(out))
        return cls.read(out)

    @classmethod
    def read(cls, out: Path) -> Self:
        """Read the report in a folder."""
        report = json.loads((out / "report.json").read_text("utf-8"))
        median, trust = report["steps"].get("median_ms"), report["trust"]["level"]
        promised = promises(report["results"])
        return cls(median, unpriced(report["results"]) | set(promised), promised, trust)


def promises(results: Sequence[Mapping[str, Any]]) -> dict[str, Promise]:
    """Return the findings of a JSON report that promise a saving."""
    savings = {each["rule"]: each["saving"] for each in results if each["outcome"] == "finding"}
    return {
        rule: Promise(saving["share"], saving["bound"] == "at-most")
        for rule, saving in savings.items()
        if saving and saving["share"] > 0.0
    }


def unpriced(results: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the findings of a JSON report whose saving is not known, doubts about the recording apart."""
    found = [
        each for each in results if each["outcome"] == "finding" and each["topic"] != "recording"
    ]
    return {each["rule"] for each in found if each["saving"] is None}
