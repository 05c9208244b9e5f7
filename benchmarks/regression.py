"""How often a gate of `tfdoctor diff` is wrong: ``python -m benchmarks.regression [FOLDER] [--record N]``.

First with made-up runs: how often `--max-regression 5%` fails for runs of one program, and how often it catches a
regression of 10 %. Then, with a folder, with real recordings in it: each pair of recordings of one script, in both
directions. ``--record N`` first makes N recordings of each script of SCRIPTS there, by turns.
"""

import argparse
import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tfdoctor.compare.compare import Sides, compare
from tfdoctor.compare.interval import step_interval
from tfdoctor.compare.loading import load
from tfdoctor.compare.report_data import ReportData
from tfdoctor.compare.step_times import RunSteps
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    "convnet": ROOT / "examples" / "float32_convnet.py",
    "input": ROOT / "examples" / "input_bound.py",
    "loop": ROOT / "benchmarks" / "accuracy" / "pairs" / "loop_without_prefetch" / "fault.py",
}
LOOPS = ROOT / "benchmarks" / "loops"  # of the stopwatch that the last script imports

GATE, REGRESSION = 0.05, 0.10
STEPS, PAIRS = 60, 200
JITTERS = (0.005, 0.01, 0.015, 0.02, 0.03)
"""Standard deviations of steps; those of runs are half as large."""

SEVERAL = ((0.03, 3), (0.03, 5), (0.05, 5), (0.05, 10))
"""The same with several recordings of each side."""

RELATED, LATE, LATER = 0.3, 0.02, 0.5
"""Correlation of a step with the one before, share of late steps, and their mean lateness in steps."""

Generator = np.random.Generator
Floats = npt.NDArray[np.float64]


def step_series(rng: Generator, jitter: float, step_ms: float = 20.0, steps: int = STEPS) -> Floats:
    """Return the times of steps whose noise depends on that of the step before, ms."""
    noise = rng.normal(size=steps)
    for at in range(1, steps):
        noise[at] = RELATED * noise[at - 1] + np.sqrt(1 - RELATED**2) * noise[at]
    late = (rng.random(steps) < LATE) * rng.exponential(LATER, steps)
    return np.asarray(step_ms * np.exp(jitter * noise + late))


def made_run(rng: Generator, jitter: float, slower: float = 1.0) -> RunSteps:
    """Return a made-up run, whose speed differs from that of others by half of its jitter."""
    speed = slower * np.exp(jitter / 2 * rng.normal())
    times = step_series(rng, jitter, 20.0 * speed)
    return RunSteps(times, float(np.median(times)))


def failures(jitter: float, recordings: int, slower: float) -> float:
    """Return the share of made-up pairs that fail the gate."""
    rng = np.random.default_rng(0)
    lows = [
        step_interval(
            [made_run(rng, jitter) for _ in range(recordings)],
            [made_run(rng, jitter, slower) for _ in range(recordings)],
        ).low
        for _ in range(PAIRS)
    ]
    return float(np.mean(np.expm1(lows) > GATE))


def made_rows() -> None:
    """Print how often the gate fails for made-up runs."""
    print(
        "| steps differ by | runs differ by | recordings of each side | no change: fails | 10 % slower: fails |"
    )
    print("|--:|--:|--:|--:|--:|")
    for jitter, recordings in [*((jitter, 1) for jitter in JITTERS), *SEVERAL]:
        alike, slower = (failures(jitter, recordings, by) for by in (1.0, 1.0 + REGRESSION))
        print(
            f"| {100 * jitter:g} % | {50 * jitter:g} % | {recordings} | {100 * alike:g} % | {100 * slower:g} % |"
        )


def record(folder: Path, count: int) -> None:
    """Record each script so many times, by turns, each run up to the end of its traced steps."""
    for number, name in itertools.product(range(1, count + 1), SCRIPTS):
        out = folder / f"{name}-{number}"
        words = (
            "profile",
            "-q",
            "--steps",
            str(STEPS),
            "--stop-after",
            "--no-report",
            "--out",
            str(out),
        )
        command = [sys.executable, "-m", "tfdoctor", *words, str(SCRIPTS[name])]
        subprocess.run(command, env={**_environment(), "PYTHONPATH": str(LOOPS)}, check=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}


def _examined(recording: Recording, title: str) -> Diagnosis:
    return diagnose(recording, all_rules(), title, ask_xprof=False)


def real_rows(folder: Path) -> None:
    """Print how often the gate fails for real recordings of unchanged scripts."""
    print("| script | recordings | steps, ms | pairs | no change: fails |")
    print("|---|--:|--:|--:|--:|")
    for name in SCRIPTS:
        found = [
            load(path.parent, _examined) for path in sorted(folder.glob(f"{name}-*/tfdoctor.json"))
        ]
        reports = [report for report in found if report.step_ms]
        pairs = list(itertools.permutations(reports, 2))
        failed = sum(_fails(pair) for pair in pairs)
        steps = sorted(report.step_ms or 0.0 for report in reports)
        span = f"{steps[0]:.1f} to {steps[-1]:.1f}" if steps else ""
        print(f"| {name} | {len(reports)} | {span} | {len(pairs)} | {failed} |")


def _fails(pair: Sequence[ReportData]) -> bool:
    gate = compare(Sides.of(pair[:1], pair[1:]), most_regression=GATE).gate
    return gate is not None and gate.failed


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--record", type=int, default=0, help="recordings of each script to make")
    arguments = parser.parse_args()
    if arguments.folder and arguments.record:
        record(arguments.folder, arguments.record)
    made_rows()
    if arguments.folder:
        real_rows(arguments.folder)


if __name__ == "__main__":
    main()
