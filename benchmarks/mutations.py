"""Reads damaged recordings by the thousand and counts what ends in a traceback.

python -m benchmarks.mutations --cases 100000 --first 0
"""

import argparse
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType

from benchmarks import commands
from scripts.mutation.cases import CaseResult, run
from scripts.mutation.originals import Original, of_folder

CHUNK = 50
"""Cases that a process takes at a time."""

PATIENCE_S = 30
"""A case takes a twentieth of a second; one that takes so long does not end."""

SHOWN = 20
"""Failures that are printed in full, one of each kind."""


def main() -> None:
    """Run the cases and print a summary; exit 1 if any failed."""
    options = _options()
    began = time.monotonic()
    seeds = range(options.first, options.first + options.cases)
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    outcomes: list[CaseResult] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for chunk in pool.map(partial(_chunk, options.recordings), chunks):
            outcomes += chunk
            failed = [outcome for outcome in outcomes if outcome.failure]
            print(f"{len(outcomes)} cases, {len(failed)} failed", end="\r", file=sys.stderr, flush=True)
    refused = sum(outcome.refused for outcome in outcomes)
    _show(failed)
    print(
        f"{len(outcomes)} recordings in {time.monotonic() - began:.0f} s: {refused} refused with one sentence, "
        f"{len(outcomes) - refused - len(failed)} reported, {len(failed)} failed"
    )
    sys.exit(bool(failed))


def _options() -> argparse.Namespace:
    parser = commands.parser(__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="how many recordings")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--recordings", type=Path, nargs="*", help="in place of the samples")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser.parse_args()


def _chunk(recordings: list[Path] | None, seeds: range) -> list[CaseResult]:
    warnings.simplefilter("error")  # a number that overflows is no figure
    with tempfile.TemporaryDirectory() as folder:
        chosen = tuple(map(_original, recordings or ()))
        return [_within_patience(seed, Path(folder), chosen) for seed in seeds]


_original = cache(of_folder)


def _within_patience(seed: int, folder: Path, chosen: tuple[Original, ...]) -> CaseResult:
    try:
        with _alarm():
            return run(seed, folder, chosen)
    except TimeoutError:
        return CaseResult(seed, failure=f"no end within {PATIENCE_S} s")


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(str(frame))

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)


def _show(failed: list[CaseResult]) -> None:
    """Print each kind of failure once, and the numbers of all its cases."""
    kinds = Counter(_kind(outcome) for outcome in failed)
    for kind, times in kinds.most_common(SHOWN):
        same_kind = [outcome for outcome in failed if _kind(outcome) == kind]
        print(f"{times} x {kind}\n  seeds {[outcome.seed for outcome in same_kind[:10]]}")
        print(same_kind[0].failure)


def _kind(outcome: CaseResult) -> str:
    """Return the place and the type of an error: the last lines of its traceback."""
    lines = outcome.failure.strip().splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File")]
    return f"{lines[-1][:60]} {places[-1] if places else ''}"


if __name__ == "__main__":
    main()
