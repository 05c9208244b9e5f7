"""How often a gate of `tfdoctor diff` is wrong: ``python -m benchmarks.regression [FOLDER] [--record N]``.

First with made-up runs, even ones and disturbed ones: how often `--max-regression 5%` fails for runs of one
program, how often they are called different, and how often the gate catches a regression. Then, with a folder, with
real recordings in it: each pair of recordings of one script, in both directions, and each pair of a script and its
slower version. ``--record N`` first makes N recordings of each script beside each load there, by turns.
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from benchmarks import commands
from benchmarks.accuracy.corpus import named
from tfdoctor.compare.compare import compare
from tfdoctor.compare.reports import load, step_of
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis, Subject, Trust
from tfdoctor.diagnosis.comparison import ChangeOfStep, Direction
from tfdoctor.diagnosis.step import StepRow, StepsSummary
from tfdoctor.recording import Recording
from tfdoctor.rules import all_rules
from tfdoctor.terms.kinds import StepSource, TrustLevel

ROOT = Path(__file__).parents[1]
WAITING = str(ROOT / "benchmarks" / "waiting_step.py")
SCRIPTS = {
    "convnet": (str(ROOT / "examples" / "float32_convnet.py"),),
    "input": (str(ROOT / "examples" / "input_bound.py"),),
    "loop": (),  # of the corpus
    "waiting": (WAITING, "0.002"),
    "waiting-longer": (WAITING, "0.02"),
}
PAIR = "loop_without_prefetch"
LOOPS = ROOT / "benchmarks" / "loops"  # of the stopwatch that one of the scripts imports

SLOWER = ("waiting", "waiting-longer")

LOADS = {"alone": None, "idle": 19, "busy": 0}
"""The priority (nice) of programs that use all cores beside a recording; None is no such program."""

BUSY = "import os, sys\nos.nice(int(sys.argv[1]))\nwhile True: sum(range(20_000))"

GATE, REGRESSIONS = 0.05, (0.05, 0.1, 0.2, 3.0)
STEPS, PAIRS = 60, 200
JITTERS = (0.005, 0.01, 0.015, 0.02, 0.03)
"""Standard deviations of steps; those of runs are half as large."""

SEVERAL = ((0.03, 3), (0.03, 5), (0.05, 5), (0.05, 10))
"""The same with several recordings of each side."""

RELATED, LATE, LATER = 0.3, 0.02, 0.5
"""Correlation of a step with the one before, share of late steps, and their mean lateness in steps."""

CLAIMED = (Direction.FASTER, Direction.SLOWER)

DISTURBED = 0.02
"""Standard deviation of the steps that are disturbed as well."""

Generator = np.random.Generator
Floats = npt.NDArray[np.float64]


def step_series(rng: Generator, jitter: float, step_ms: float = 20.0, steps: int = STEPS) -> Floats:
    """Return the times of steps whose noise depends on that of the step before, ms."""
    noise = rng.normal(size=steps)
    for at in range(1, steps):
        noise[at] = RELATED * noise[at - 1] + np.sqrt(1 - RELATED**2) * noise[at]
    late = (rng.random(steps) < LATE) * rng.exponential(LATER, steps)
    return np.asarray(step_ms * np.exp(jitter * noise + late))


def outlier(rng: Generator) -> Floats:
    """Return logarithms of factors: one step takes 30 times as long."""
    return np.where(np.arange(STEPS) == rng.integers(STEPS), np.log(30.0), 0.0)


def burst(rng: Generator) -> Floats:
    """Eight steps in a row take three times as long, as while another program starts."""
    since = np.arange(STEPS) - rng.integers(STEPS - 8)
    return np.where((since >= 0) & (since < 8), np.log(3.0), 0.0)  # noqa: PLR2004 - the eight


def drift(rng: Generator) -> Floats:
    """The machine becomes slower or faster by some 15 %."""
    return np.linspace(0.0, 0.15 * rng.normal(), STEPS)


def speeds(rng: Generator) -> Floats:
    """The machine changes between two speeds, 20 % apart, every 25 steps or so."""
    changes = rng.random(STEPS) < 0.04  # noqa: PLR2004 - one of 25
    return np.asarray(0.2 * ((np.cumsum(changes) + rng.integers(2)) % 2))


DISTURBANCES: Mapping[str, Callable[[Generator], Floats]] = {
    "one step 30 times as long": outlier,
    "a burst of 8 steps 3 times as long": burst,
    "a drift by some 15 %": drift,
    "two speeds 20 % apart": speeds,
}


def made_run(rng: Generator, jitter: float, disturb: Callable[[Generator], Floats] | None = None) -> Floats:
    """Return the steps of a made-up run, whose speed differs from that of others by half of its jitter, ms."""
    times = step_series(rng, jitter, 20.0 * np.exp(jitter / 2 * rng.normal()))
    return times if disturb is None else times * np.exp(disturb(rng))


def reported(times: Floats) -> Diagnosis:
    """Return a report of steps that compute all the time."""
    step_ms = float(np.median(times))
    rows = tuple(
        StepRow(number=number, total_ms=time, parts_ms={"device": time}, steady=True)
        for number, time in enumerate(times.tolist())
    )
    steps = StepsSummary(source=StepSource.MARKERS, step_ms=step_ms, rows=rows, breakdown_ms={"device": step_ms})
    trust = Trust(level=TrustLevel.HIGH)
    return Diagnosis(version="", subject=Subject(title=""), steps=steps, trust=trust, results=())


def made_row(
    name: str, jitter: float, recordings: int, disturb: Callable[[Generator], Floats] | None = None
) -> None:
    """Print how often made-up pairs fail the gate; of a slower program all steps are longer by one factor."""
    rng = np.random.default_rng(0)
    pairs = [[[made_run(rng, jitter, disturb) for _ in range(recordings)] for _ in range(2)] for _ in range(PAIRS)]
    shares = []
    for slower in (0.0, *REGRESSIONS):
        found = [
            _step([*map(reported, before)], [reported((1 + slower) * times) for times in after])
            for before, after in pairs
        ]
        shares.append(np.mean([step.low > GATE for step in found]))
        if not slower:
            shares.append(np.mean([step.direction in CLAIMED for step in found]))
    print(f"| {name} | {recordings} | {' | '.join(f'{100 * share:g} %' for share in shares)} |")


def _step(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> ChangeOfStep:
    step = compare(before, after).step
    if step is None:
        raise ValueError("the steps cannot be compared")
    return step


def made_rows() -> None:
    """Print how often the gate fails for made-up runs."""
    slower = " | ".join(f"{100 * by:g} % slower: fails" for by in REGRESSIONS)
    print(f"| steps | recordings of each side | no change: fails | no change: called different | {slower} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for jitter, recordings in [*((jitter, 1) for jitter in JITTERS), *SEVERAL]:
        made_row(f"differ by {100 * jitter:g} %", jitter, recordings)
    for name, disturb in DISTURBANCES.items():
        made_row(name, DISTURBED, 1, disturb)


def record(folder: Path, count: int) -> None:
    """Record each script so many times beside each load, by turns, each run up to the end of its traced steps."""
    for number, other, name in itertools.product(range(1, count + 1), LOADS, SCRIPTS):
        out = folder / f"{name}-{other}-{number}"
        options = ("-q", "--stop-after", "--no-report", "--steps", str(STEPS), "--out", str(out))
        with TemporaryDirectory() as scripts, beside(LOADS[other]):
            script = SCRIPTS[name] or (named(PAIR).script("fault", Path(scripts)),)
            command = (*commands.TFDOCTOR, "profile", *options, *script)
            commands.output(*command, variables={"PYTHONPATH": str(LOOPS)})


@contextmanager
def beside(nice: int | None) -> Iterator[None]:
    """Use all cores meanwhile, at a priority; None uses none."""
    cores = 0 if nice is None else os.cpu_count() or 1
    programs = [subprocess.Popen([sys.executable, "-c", BUSY, str(nice)]) for _ in range(cores)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _examined(recording: Recording, title: str) -> Diagnosis:
    return diagnose(recording, all_rules(), title, ask_xprof=False)


def real_rows(folder: Path) -> None:
    """Print how often the gate is wrong for real recordings."""
    print("| script | recordings | steps, ms | pairs | no change: fails | called different |")
    print("|---|--:|--:|--:|--:|--:|")
    found = {name: _reports(folder, name) for name in SCRIPTS}
    for name, reports in found.items():
        steps = [_step([one], [other]) for one, other in itertools.permutations(reports, 2)]
        times = sorted(step_of(report) or 0.0 for report in reports)
        span = f"{times[0]:.1f} to {times[-1]:.1f}" if times else ""
        failed = sum(step.low > GATE for step in steps)
        different = sum(step.direction in CLAIMED for step in steps)
        print(f"| {name} | {len(reports)} | {span} | {len(steps)} | {failed} | {different} |")
    pairs = list(itertools.product(*(found[name] for name in SLOWER)))
    missed = sum(_step([one], [other]).low <= GATE for one, other in pairs)
    print(f"{SLOWER[0]} → {SLOWER[1]}: {len(pairs)} pairs, {missed} do not fail")


def _reports(folder: Path, name: str) -> list[Diagnosis]:
    """Return the recordings of a script beside each load, of those that have steps."""
    found = [
        load(path.parent, _examined, all_rules())
        for beside_it in LOADS
        for path in sorted(folder.glob(f"{name}-{beside_it}-*/tfdoctor.json"))
    ]
    return [report for report in found if step_of(report)]


def main() -> None:
    """Print both tables."""
    parser = commands.parser(__doc__)
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
