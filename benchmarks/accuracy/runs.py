"""Runs a script alone, with a stopwatch, or under tfdoctor, and returns the results."""

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks import commands
from benchmarks.commands import TFDOCTOR, FailedError, output
from benchmarks.loops.stopwatch import read
from tfdoctor.rules import all_rules

LOOPS = Path(__file__).parents[1] / "loops"

WARMUP = 20
"""Steps that do not count: graphs are built, buffers filled, parallelism tuned."""

BLOCK = 10
"""Steps whose mean is one reading. A pipeline on two threads yields two batches at once, so that short and
long steps alternate; the median over blocks is a typical step without outliers."""


GENERAL = frozenset({"hot-line", "hot-stage", *(rule.name for rule in all_rules() if rule.general)})  # two of 0.2.0
"""Rules that name a place whose time no specific rule explains: faults that they alone name are counted apart."""


def run(*command: str | Path, **environment: str) -> None:
    """Run a command in the environment of the scripts, which import the stopwatch.

    Raises:
        FailedError: its exit code was not 0.
    """
    output(*command, variables={"PYTHONPATH": str(LOOPS)} | environment)


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
    """tfdoctor's report on a script: the median step in ms, the findings and the promised savings.

    A finding whose saving is unknown counts as found but promises nothing. One that saves nothing until others
    are fixed does not count as found, since it asks for no change yet.
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
        run(*TFDOCTOR, "profile", "--format", "json", "--out", out, script)
        return cls.read(out)

    @classmethod
    def again(cls, out: Path) -> Self:
        """Diagnose a recording again, with the present rules.

        Raises:
            FailedError: it cannot be diagnosed.
        """
        run(*TFDOCTOR, "report", "--format", "json", out)
        return cls.read(out)

    @classmethod
    def read(cls, out: Path) -> Self:
        """Read the report in a folder."""
        report = commands.report(out)
        median, trust = report["steps"].get("median_ms"), report["trust"]["level"]
        promised = promises(report["results"])
        return cls(median, unpriced(report["results"]) | set(promised), promised, trust)


def promises(results: Sequence[Mapping[str, Any]]) -> dict[str, Promise]:
    """Return the findings of a JSON report that promise a saving."""
    savings = {result["rule"]: result["saving"] for result in results if result["outcome"] == "finding"}
    return {
        rule: Promise(saving["share"], saving["bound"] == "at-most")
        for rule, saving in savings.items()
        if saving and saving["share"] > 0.0
    }


def unpriced(results: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the findings of a JSON report with an unknown saving, without those about the recording."""
    findings = [result for result in results if result["outcome"] == "finding" and result["topic"] != "recording"]
    return {result["rule"] for result in findings if result["saving"] is None}
