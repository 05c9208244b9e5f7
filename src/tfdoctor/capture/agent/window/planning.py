"""Which steps to trace: where a window fits into the steps to come, and whether one is worth it now."""

from __future__ import annotations

import math

from ..process.budget import FEWEST_CALLS
from .steps import NEVER
from .tracing import WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .captures import Capture
    from .steps import StepCounter
    from .tracing import Tracing

COST = "cost"  # The reason of a window that has cost as much as it may
FIRST_LOOK = 2  # Calls of a window after which its cost is looked at for the first time
MOST_SAMPLED = 5  # After the window, at most so many times its steps are sampled: very short steps give few samples
MANY_ROUNDS = 3  # A fit that is entered so often is itself inside a loop, and the window may outlast it


def planned(window: Tracing, k: int) -> int:
    """Return how many steps to trace when a call takes k of them."""
    steps = window.plan["steps"]
    return steps if k == 1 else max(steps, FEWEST_CALLS * k)


def goes_on(window: Tracing, source: StepCounter) -> bool:
    """Say whether the loop probably has more steps than the window, for samples of the stack that cost them time.

    Keras 2 marks steps itself, so that those could not be told from the ones that are measured. Workers of a job
    wait for each other: none keeps its profiler longer than the others.
    """
    by_time = window.stop == NEVER
    if by_time or not source.marks or window.log.state["rank"]:
        return False
    left = calls_left(window, source)
    if left is None:
        return not window.plan["stop_after"]  # only a step ends the run, and there may be none
    return left >= window.plan["steps"]


def calls_left(window: Tracing, source: StepCounter) -> int | None:
    """Return how many steps follow the window; None is unknown, as where the end of an epoch was announced."""
    if source.end is None or source.end < source.seen or source.rounds >= MANY_ROUNDS:
        return None
    return source.end - window.stop


def most_sampled(window: Tracing, source: StepCounter, measured: int) -> int:
    """Return how many steps after the window may be sampled: at least half of them remain as they are."""
    left = calls_left(window, source)
    most = MOST_SAMPLED * measured
    return most if left is None else min(most, left // 2)


def announce(window: Tracing, source: StepCounter, total: int, k: int, skip: int) -> None:
    """`total` more steps, `k` a call, are to come: fit the window into them.

    `skip` steps build the graph; they are only traced when there are no others.
    """
    if window.state is not WAITING or total <= 0:
        return
    done, end = source.seen, source.seen + total
    source.end = end
    first = max(window.plan["warmup"], done)
    if end < first + planned(window, k) and source.rounds < MANY_ROUNDS:
        earliest = done + skip if total > skip else done
        first = max(earliest, min(first, end - planned(window, k)))
    source.ask_at(max(0, first if source.marks else first - k), k)


def is_worth(window: Tracing, source: StepCounter, number: int, k: int) -> bool:
    """Say whether a window now may become better than the one there is."""
    if source.yields_to(window.sources.values()):
        return False
    if window.kept is None:
        return True
    left = planned(window, k)
    if source.end is not None and source.rounds < MANY_ROUNDS:
        left = min(left, source.end - number)
    good = max(0, number + left - max(number, window.plan["warmup"]))
    if (good, left) <= window.kept.good:
        source.alarm = NEVER  # until it announces more
        return False
    few = max(FEWEST_CALLS * k, 2 * window.kept.record["steps"])
    wait_s = window.budget.wait_s(min(left, few)) if is_bounded(window) else 0.0
    if wait_s:
        source.ask_at(number + k * max(1, math.ceil(wait_s / (source.usual_s() or wait_s) / k)), k)
    return not wait_s


def is_bounded(window: Tracing) -> bool:
    """Say whether the trace is a small part of what is wanted of the run.

    It is none where it ends the run, or was asked for by time. Workers of a job are traced alike.
    """
    plan = window.plan
    return not (plan["stop_after"] or plan.get("seconds") or window.log.state["rank"])


def costs_enough(window: Tracing, capture: Capture, number: int, k: int) -> bool:
    """Say whether the open window has cost what it may, at a call of k steps; if not, set when to ask again."""
    more = window.budget.more_calls(max(1, (number - capture.start) // k), k)
    window.ask_cost = number + more * k
    return not more
