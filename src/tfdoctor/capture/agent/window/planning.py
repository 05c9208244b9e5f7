"""Which steps to trace: where a window fits into the steps to come, and whether one is worth it now."""

from __future__ import annotations

import math

from ..process.budget import FEWEST_CALLS
from .steps import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.budget import CaptureBudget
    from ..process.declared import AgentPlan
    from .captures import Capture
    from .steps import StepCounter

FIRST_LOOK = 2  # Calls of a window after which its cost is looked at for the first time
MOST_SAMPLED = 5  # After the window, at most so many times its steps are sampled: very short steps give few samples
MANY_ROUNDS = 3  # A fit that is entered so often is itself inside a loop, and the window may outlast it


def planned(wanted: int, k: int, most: int | None) -> int:
    """Return how many steps to trace when a call takes k of them; no more than `most`, but whole calls."""
    steps = wanted if k == 1 else max(wanted, FEWEST_CALLS * k)
    return steps if most is None else min(steps, -(-most // k) * k)


def calls_left(source: StepCounter, stop: int) -> int | None:
    """Return how many steps follow the window; None is unknown, as where the end of an epoch was announced."""
    if source.end is None or source.end < source.seen or source.rounds >= MANY_ROUNDS:
        return None
    return source.end - stop


def goes_on(plan: AgentPlan, source: StepCounter, stop: int) -> bool:
    """Say whether the loop probably has more steps than the window, for samples of the stack that cost them time.

    Keras 2 marks steps itself, so that those could not be told from the ones that are measured.
    """
    if stop == NEVER or not source.marks:
        return False
    left = calls_left(source, stop)
    if left is None:
        return not plan["stop_after"]  # only a step ends the run, and there may be none
    return left >= plan["steps"]


def most_sampled(source: StepCounter, stop: int, measured: int) -> int:
    """Return how many steps after the window may be sampled: at least half of them remain as they are."""
    left, most = calls_left(source, stop), MOST_SAMPLED * measured
    return most if left is None else min(most, left // 2)


def announce(source: StepCounter, total: int, k: int, skip: int, warmup: int, steps: int) -> None:
    """`total` more steps, `k` a call, are to come: fit a window of so many `steps` into them.

    `skip` steps build the graph; they are only traced when there are no others.
    """
    done, end = source.seen, source.seen + total
    source.end = end
    first = max(warmup, done)
    if end < first + steps and source.rounds < MANY_ROUNDS:
        earliest = done + skip if total > skip else done
        first = max(earliest, min(first, end - steps))
    source.ask_at(max(0, first if source.marks else first - k), k)


def fitting(source: StepCounter, kept: Capture, number: int, steps: int) -> int:
    """Return how many of so many steps a window has from now on; 0 if it is no better than the one there is."""
    if source.end is not None and source.rounds < MANY_ROUNDS:
        steps = min(steps, source.end - number)
    good = max(0, number + steps - max(number, kept.warmup))
    return steps if (good, steps) > kept.good else 0


def waits(budget: CaptureBudget, source: StepCounter, number: int, k: int, steps: int) -> bool:
    """Say whether to wait until a window of so many steps costs little enough of the run; it is asked for then."""
    wait_s = budget.wait_s(steps)
    if wait_s:
        source.ask_at(number + k * max(1, math.ceil(wait_s / (source.usual_s() or wait_s) / k)), k)
    return bool(wait_s)
