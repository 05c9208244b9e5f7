"""What the recorder of the run takes of it: ``python -m benchmarks.run_overhead``.

Scripts of 10 s, 2 min and 20 min run under ``tfdoctor profile --no-trace``, which records nothing else. Each
measures its recorder (see ``run_overhead_worker.py``). ``--style fit --seconds 120`` chooses, ``--alternate`` has
the recorder take turns with TensorFlow alone. Results are stored in ``run_overhead.json``, from which
``make docs`` fills the page.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from math import comb, log
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import commands, pages

RESULTS = Path(__file__).with_name("run_overhead.json")

STYLES = {
    "fit": "Keras fit",
    "loop": "custom loop",
    "usual": "custom loop, longer steps",
    "threads": "loop, eight threads feed it",
    "forks": "loop, forks once a second",
    "pool": "loop, a pool of processes feeds it",
    "prepare": "Python without TensorFlow",
}
"""The scripts, and how the page calls them."""

LENGTHS = {10: "10 s", 120: "2 min", 1200: "20 min"}

LONG = ("fit", "loop", "prepare")
"""The styles that run for 20 minutes."""

CONFIDENCE = 0.95
"""Of the interval around the median of pairs."""

WEEK_MIN = 7 * 24 * 60.0


def measured(style: str, seconds: int, *, alternate: bool) -> dict[str, Any]:
    """Run one script under the recorder and return what it has measured."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        words = (style, str(seconds), str(result), *(["alternate"] if alternate else []))
        options = ("--no-report", "--no-trace", "--out", f"{folder}/out")
        worker = (sys.executable, "-m", "benchmarks.run_overhead_worker", *words)
        commands.output(*commands.TFDOCTOR, "profile", *options, "--", *worker, folder=RESULTS.parents[1])
        found: dict[str, Any] = json.loads(result.read_text())
        manifest = json.loads(Path(folder, "out", "tfdoctor.json").read_text())
    blocks = found.pop("blocks")
    found["step_ms"] = median(block["median"] for block in blocks if block["on"])
    if alternate:
        found["pairs"] = {name: list(pairs(blocks, name)) for name in ("mean", "median", "cpu")}
    found["outside_cpu_s"] = sum(one["cost_ms"] for one in manifest["samplers"]) / 1e3
    return found


def pairs(blocks: list[Mapping[str, float]], name: str) -> Iterator[float]:
    """Yield by how much steps with the recorder are longer than those before and after without it; 0.01 is 1 %."""
    for before, on, after in zip(blocks, blocks[1:], blocks[2:], strict=False):
        if on["on"] and not before["on"] and not after["on"]:
            yield on[name] / ((before[name] + after[name]) / 2) - 1


def interval(values: list[float]) -> tuple[float, float]:
    """Return an interval that holds the median at this confidence, whatever the noise is like.

    The median lies between the k-th value and the k-th last one, unless as few as k of n fair coins show heads.
    """
    ordered, outside, k = sorted(values), 0.0, 0
    while outside + comb(len(ordered), k) / 2 ** len(ordered) <= (1 - CONFIDENCE) / 2:
        outside += comb(len(ordered), k) / 2 ** len(ordered)
        k += 1
    k = max(1, k)
    return ordered[k - 1], ordered[-k]


# The page


def stored() -> dict[str, Any]:
    """Return the results so far."""
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {"runs": {}}
    return found


def key(style: str, seconds: int, *, alternate: bool) -> str:
    """Return the name of a run's result."""
    return f"{style} {seconds}{' alternate' if alternate else ''}"


def store(name: str, run: Mapping[str, Any]) -> Mapping[str, Any]:
    """Store a result with its day, and return it; those of other runs stay."""
    found = stored()
    found["machine"] = pages.machine()
    found["runs"][name] = dated = {**run, "day": pages.today()}
    pages.store(RESULTS, found)
    return dated


def hooks_us(run: Mapping[str, Any]) -> float:
    """Return what the hooks take of a step, in us."""
    return float(sum(run["hooks_us"].values()))


def shares(run: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the share of the run that the thread, the hooks and stops for forks take."""
    seconds = run["seconds"]
    return (
        run["sampler_cpu_s"] / seconds,
        hooks_us(run) / 1e6 * run["steps"] / seconds,
        run["forks"] * run["fork_us"] / 1e6 / seconds,
    )


def row(style: str, seconds: int, run: Mapping[str, Any]) -> str:
    """Return a line of the table of what the recorder takes."""
    thread, hooks, forks = shares(run)
    return (
        f"| {STYLES[style]} | {LENGTHS[seconds]} | {run['step_ms']:.2f} ms | {thread:.2%} "
        f"| {hooks:.2%} | {forks:.2%} | **{thread + hooks + forks:.2%}** | {run['day']} |"
    )


def turns(style: str, run: Mapping[str, Any]) -> str:
    """Return a line of the table of pairs."""
    found = [f"| {STYLES[style]} | {run['step_ms']:.2f} ms | {len(run['pairs']['mean'])}"]
    for name in ("mean", "cpu"):
        low, high = interval(run["pairs"][name])
        found.append(f"{median(run['pairs'][name]):+.2%} ({low:+.2%} to {high:+.2%})")
    return " | ".join(found) + " |"


def written(style: str, run: Mapping[str, Any]) -> str:
    """Return what a run of 20 minutes has written, and what a week writes at that rate.

    The width of buckets grows with the age of the run, so that the rate falls as that grows.
    """
    age, rate = run["seconds"] / 60, run["bytes_a_minute"]
    week = run["bytes"] + rate * 0.75 * age * log(WEEK_MIN / age)
    return (
        f"- {STYLES[style]}: {run['bytes'] / 1e6:.2f} MB after {age:.0f} minutes, "
        f"{rate / 1e3:.1f} kB a minute by then; a week: {week / 1e6:.1f} MB"
    )


def markdown() -> Iterator[str]:
    """Yield the figures for the page."""
    found = stored()
    runs = found["runs"]
    yield f"Measured on {found['machine']}.\n"
    yield "| script | length | step | thread | hooks | forks | together | measured on |"
    yield "|---|---|---|---|---|---|---|---|"
    for seconds in LENGTHS:
        for style in STYLES:
            if run := runs.get(key(style, seconds, alternate=False)):
                yield row(style, seconds, run)
    yield from _turns(runs)
    long = {style: runs.get(key(style, max(LENGTHS), alternate=False)) for style in LONG}
    if any(long.values()):
        yield "\nWhat is written:\n"
        yield from (written(style, run) for style, run in long.items() if run)


def _turns(runs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of pairs, where any were measured: of each script the longest run."""
    rows = []
    for style in STYLES:
        found = (runs.get(key(style, seconds, alternate=True)) for seconds in reversed(LENGTHS))
        if run := next(filter(None, found), None):
            rows.append(turns(style, run))
    if rows:
        yield "\nBy turns with TensorFlow alone:\n"
        yield "| script | step | pairs | time of a step | CPU time of a step |"
        yield "|---|---|---|---|---|"
        yield from rows


def main() -> None:
    """Run the chosen scripts and store what they have measured."""
    parser = commands.parser(__doc__)
    parser.add_argument("--style", choices=STYLES, action="append")
    parser.add_argument("--seconds", type=int, choices=LENGTHS, action="append")
    parser.add_argument("--alternate", action="store_true")
    options = parser.parse_args()
    for seconds in options.seconds or LENGTHS:
        usual = LONG if seconds == max(LENGTHS) else STYLES
        for style in options.style or usual:
            run = store(
                key(style, seconds, alternate=options.alternate),
                measured(style, seconds, alternate=options.alternate),
            )
            line = turns(style, run) if options.alternate else row(style, seconds, run)
            print(line, f"{hooks_us(run):.1f} us a step", flush=True)


if __name__ == "__main__":
    main()
