"""Compares tfdoctor's steps with a plain stopwatch's, for training loops in every style.

``python -m benchmarks.steps`` runs each script of ``loops/`` alone and under ``tfdoctor profile``.
In both runs the script itself notes when a step begins. ``--only dcgan`` runs one script,
``--keras2 PYTHON`` runs `tf_keras_style` also by a Python that has Keras 2, and ``--table`` writes
the figures into ``docs/explanation/steps.md``.
"""

import ast
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks import commands, pages
from benchmarks.loops.stopwatch import Span, read
from tfdoctor.capture.agent.window.window import AFTERWARDS
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest

LOOPS = Path(__file__).with_name("loops")

WARMUP = 10
"""Where nothing was traced, the stopwatch's steps count from here on, as tfdoctor's would."""

CRITERION = 0.05
"""tfdoctor's median step is right when it is so near to the stopwatch's in the same run."""

TIMES = re.compile(r"\b\d+m?s(/step|/epoch)?\b|(?<=^[IWEF])\d{4} [\d:.]+ +\d+(?= )", re.MULTILINE)
"""What differs between any two runs: Keras' own times, and the time and process of a line of log."""

COLUMNS = {
    "script": 23,
    "source": 20,
    "traced": 6,
    "stopwatch": 9,
    "tfdoctor": 9,
    "off by": 8,
    "alone": 9,
    "same output": 11,
}
"""What a row shows, and how wide on a terminal. Times are medians in ms."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a script did: its exit code, its output without times, the stopwatch's spans."""

    code: int
    stdout: str
    stderr: str
    spans: Sequence[Span]
    begun: int

    @classmethod
    def of(cls, *command: str) -> Self:
        """Run a command with the stopwatch on."""
        with tempfile.TemporaryDirectory() as folder:
            ticks = Path(folder, "ticks")
            done = commands.ended(*command, variables={"STEP_TIMES": str(ticks)})
            spans, begun = read(ticks)
        theirs = [line for line in done.stderr.splitlines() if not line.startswith("tfdoctor: ")]
        stdout, stderr = TIMES.sub("…", done.stdout), TIMES.sub("…", "\n".join(theirs))
        return cls(done.returncode, stdout, stderr, spans, begun)

    def difference(self, other: Self) -> str:
        """Return what another run did differently; "" when nothing."""
        pairs = {
            "exit code": (self.code, other.code),
            "stdout": (self.stdout, other.stdout),
            "stderr": (self.stderr, other.stderr),
        }
        return ", ".join(name for name, (first, second) in pairs.items() if first != second)

    def during(self, manifest: Manifest) -> slice:
        """Return which spans lie in the traced window; without one, those after the warm-up."""
        window = manifest.window
        if window is None or not window.stopped_unix_ns:
            return slice(min(WARMUP, len(self.spans) // 2), None)
        first = sum(span.start_ns < window.started_unix_ns for span in self.spans)
        # The profiler is stopped within the last span: its time is not all the script's.
        last = sum(span.start_ns < window.stopped_unix_ns for span in self.spans) - 1
        return slice(first, last) if last > first else slice(max(0, first - 1), last + 1)


@dataclass(frozen=True, slots=True)
class Measurement:
    """A script, run alone and under tfdoctor, and what tfdoctor says of it."""

    script: Path
    alone: Run
    profiled: Run
    manifest: Manifest
    steps: dict[str, Any]  # of the JSON report
    variant: str = ""

    @classmethod
    def of(cls, script: Path, python: str, out: Path) -> Self:
        """Run a script by some Python, record into a folder."""
        alone = Run.of(python, str(script))
        options = ("--no-report", "--python", python, "--out", str(out))
        profiled = Run.of(*commands.TFDOCTOR, "profile", *options, str(script))
        commands.ended(*commands.TFDOCTOR, "report", "--format", "json", out)
        steps = commands.report(out).get("steps", {})
        manifest = Recording.open(out).manifest or Manifest()
        variant = "" if python == sys.executable else ", Keras 2"
        return cls(script, alone, profiled, manifest, steps, variant)

    def cells(self) -> tuple[str, ...]:
        """Return a row of the table."""
        stopwatch, tfdoctor = self.compared()
        differs = self.alone.difference(self.profiled)
        alone = self.alone.spans[self.profiled.during(self.manifest)]
        return (
            self.script.stem + self.variant,
            self.steps.get("source") or "none",
            str(self.steps.get("count", 0)),
            _text(stopwatch),
            _text(self.steps.get("median_ms")),
            _error(tfdoctor, stopwatch),
            _text(_median(span.ms for span in alone)),
            f"no: {differs}" if differs else "yes",
        )

    def compared(self) -> tuple[float | None, float | None]:
        """Return what the stopwatch and tfdoctor say of the window: of the same steps, where numbered."""
        spans = self.profiled.spans[self.profiled.during(self.manifest)]
        stopwatch = [span.ms for span in spans]
        steps = [row["total_ms"] for row in self.steps.get("rows", ())]
        if self.manifest.window is None or not stopwatch or not steps:
            return None, None
        if self.in_graph:
            return statistics.mean(stopwatch), statistics.mean(steps)
        ahead = self._ahead() or 0
        skipped = ahead // spans[0].steps if 0 <= ahead <= spans[0].steps else 0
        return _median(stopwatch), _median(steps[skipped : skipped + len(spans)])

    @property
    def in_graph(self) -> bool:
        """Whether the stopwatch sees whole calls only, and of their steps the mean."""
        return self.manifest.steps.source == "graph-loop"

    def remarks(self) -> Iterator[str]:
        """Say what a reader of the row should know."""
        if self.in_graph:
            yield "the stopwatch sees whole epochs only: `off by` compares means"
        else:
            yield from self._numbering()
        kinds = [f"{loop.source} {loop.steps}" for loop in self.manifest.steps.candidates]
        if len(kinds) > 1 or (kinds and not self.steps.get("median_ms")):
            yield "loops that tfdoctor saw: " + ", ".join(kinds)
        yield from (f"missing: {entry.what}: {entry.why}" for entry in self.manifest.missing)
        yield from (f"agent error: {error.where}: {error.error}" for error in self.manifest.agent_errors)
        if self.steps.get("missing"):
            yield f"no steps: {self.steps['missing']}"
        if self.alone.code:
            yield f"the script itself fails: {self.alone.stderr[-300:]}"

    def _numbering(self) -> Iterator[str]:
        """Say where tfdoctor and the stopwatch count differently."""
        steps, window, begun = self.manifest.steps, self.manifest.window, self.profiled.begun
        last = window.first_step + window.steps if window else 0
        counted = {steps.seen, self._every()}
        # The hooks rest some steps after the window.
        if begun not in counted and not last + AFTERWARDS <= steps.seen < begun:
            yield f"tfdoctor counted {steps.seen} steps, the stopwatch {begun}"
        ahead = self._ahead()
        if ahead is not None and not 0 <= ahead <= self.profiled.spans[0].steps:
            yield f"the window began {ahead} steps from where tfdoctor says"
        if window is not None and window.stopped_by != "steps":
            yield f"the window was closed by {window.stopped_by} after {window.steps} steps"

    def _every(self) -> int:
        return sum(candidate.steps for candidate in self.manifest.steps.candidates)

    def _ahead(self) -> int | None:
        """Return the stopwatch's number of the first step in the window, less tfdoctor's."""
        window, spans = self.manifest.window, self.profiled.spans
        if window is None or not window.steps or not spans:
            return None
        begun = sum(span.steps for span in spans if span.start_ns < window.started_unix_ns)
        # The stopwatch runs on from one fit to the next, tfdoctor counts each from its beginning.
        earlier = self._every() - self.manifest.steps.seen
        return begun - window.first_step - (earlier if self._every() == self.profiled.begun else 0)


def _median(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.median(numbers) if numbers else None


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _error(value: float | None, truth: float | None) -> str:
    if value is None or not truth:
        return "-"
    off = value / truth - 1
    return f"{off:+.1%}" + (" (!)" if abs(off) > CRITERION else "")


def style(script: Path) -> str:
    """Return a script's style: the first line of its docstring."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n")[0].rstrip(".")


def table(measurements: Iterable[Measurement]) -> Iterator[str]:
    """Yield the figures in Markdown."""
    yield f"Measured on {pages.today()}, on {pages.shared_machine()}.\n"
    rows = ((style(row.script), *row.cells()) for row in measurements)
    yield from pages.table(("style", *COLUMNS), rows)


def show(cells: Iterable[str], remarks: Iterable[str] = ()) -> None:
    """Print a row, and below it what there is to say."""
    print("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True)))
    for remark in remarks:
        print(f"    {remark}")
    sys.stdout.flush()


def plan(only: Sequence[str], keras2: str | None) -> Iterator[tuple[Path, str]]:
    """Yield each script with the Python to run it."""
    for script in sorted(LOOPS.glob("*.py")):
        if script.stem != "stopwatch" and (not only or script.stem in only):
            yield script, sys.executable
            if keras2 and script.stem == "tf_keras_style":
                yield script, keras2


def main() -> None:
    """Run the scripts and print a line for each."""
    parser = commands.parser(__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--keras2", metavar="PYTHON")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the recordings here")
    options = parser.parse_args()
    measurements = []
    show(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        for number, (script, python) in enumerate(plan(options.only, options.keras2)):
            out = (options.keep or Path(folder)) / f"{number}-{script.stem}"
            measurements.append(Measurement.of(script, python, out))
            show(measurements[-1].cells(), measurements[-1].remarks())
    if options.table:
        pages.fill("steps.md", "figures", table(measurements))


if __name__ == "__main__":
    main()
