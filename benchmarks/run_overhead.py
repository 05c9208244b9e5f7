"""What the recorder of the whole run costs: ``python -m benchmarks.run_overhead [--seconds 10 120] [--style fit]``.

Within one process, turns of a second with the recorder and without it alternate: noise of the machine, and its
drift, are in both. The ratio of the median steps of two neighbouring turns is one pair. The CPU time of the
recorder's thread is given beside it. Results go to ``run_overhead.json``, which the docs show.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.run_overhead_worker import STYLES

RESULTS = Path(__file__).with_name("run_overhead.json")


def measure(style: str, seconds: float) -> dict[str, Any]:
    """Run one script; return the quartiles of the cost as shares, and what was written."""
    with tempfile.TemporaryDirectory() as folder:
        result, out = Path(folder, "result.json"), Path(folder, "out")
        command = [sys.executable, "-m", "tfdoctor", "profile", "-q", "--no-trace", "--no-report"]
        script = ["-m", "benchmarks.run_overhead_worker", style, str(seconds), str(result)]
        subprocess.run(
            [*command, "--out", str(out), *script],
            check=True,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
            stderr=subprocess.DEVNULL,
        )
        told: dict[str, Any] = json.loads(result.read_text("utf-8"))
        told["bytes"] = (out / "run.jsonl").stat().st_size
    ratios = sorted(told.pop("ratios"))
    told["pairs"] = len(ratios)
    told["cost"] = [ratios[int(at * (len(ratios) - 1))] - 1 for at in (0.25, 0.5, 0.75)]
    told["median_cost"] = median(ratios) - 1
    return told


def markdown(stored: Path = RESULTS) -> Iterator[str]:
    """Yield the results as a table."""
    yield "| script | duration | step | cost in a step, median (quartiles) | CPU time of the thread | written |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for style, durations in json.loads(stored.read_text("utf-8")).items():
        for seconds, found in sorted(durations.items(), key=lambda row: float(row[0])):
            low, middle, high = (f"{share:+.1%}" for share in found["cost"])
            yield (
                f"| {style} | {float(seconds):g} s | {found['step_ms']:.2f} ms | {middle} ({low} to {high}) | "
                f"{found['thread_share']:.2%} | {found['bytes'] / 1e3:.0f} kB |"
            )


def main() -> None:
    """Measure the styles and durations that are asked for, and keep the others' results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, nargs="+", default=[10, 120])
    parser.add_argument("--style", choices=STYLES, nargs="+", default=list(STYLES))
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.is_file() else {}
    for seconds in options.seconds:
        for style in options.style:
            found = results.setdefault(style, {})[f"{seconds:g}"] = measure(style, seconds)
            low, middle, high = (f"{share:+.2%}" for share in found["cost"])
            print(
                f"{style:<8} {seconds:>5g} s  step {found['step_ms']:.2f} ms  {middle} ({low} to {high})  "
                f"thread {found['thread_share']:.2%}  {found['bytes']:,} bytes",
                flush=True,
            )
            RESULTS.write_text(
                json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8"
            )


if __name__ == "__main__":
    main()
