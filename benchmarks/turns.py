"""Times calls by turns, so that a noisy machine hits all of them."""

import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median

Run = Callable[[], object]


def seconds(run: Run) -> float:
    """Time one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def by_turns(runs: Sequence[Run], rounds: int) -> list[list[float]]:
    """Return the seconds of each call in each round, after a first call of each, which does not count."""
    for run in runs:
        run()
    return [[seconds(run) for run in runs] for _ in range(rounds)]


def typical(runs: Sequence[Run], rounds: int, of: Callable[[Iterable[float]], float] = median) -> list[float]:
    """Return the typical seconds of each call."""
    return [of(times) for times in zip(*by_turns(runs, rounds), strict=True)]
