"""The true busy and idle times of a synthetic GPU step, from one truth value for each nanosecond.

The method shares nothing with tfdoctor's, which computes with intervals.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scripts.synthetic.gpu_schedule import HEAD, Schedule, schedule
from scripts.synthetic.run import Run
from scripts.synthetic.xspace import MS, US

NS = 1000
"""Picoseconds in a nanosecond."""

EDGES_NS = {"below 10 µs": 10_000, "10 to 100 µs": 100_000, "0.1 to 1 ms": 1_000_000}
"""The upper limit of each size of gap."""

LONGEST = "above 1 ms"

Ruler = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GpuTruth:
    """One step, in ms; ``causes`` by what the host does, ``gaps`` numbers and ``sizes`` ms by length."""

    kernel_ms: float
    busy_ms: float
    idle_ms: float
    exposed_wait_ms: float
    copy_exposed_ms: float
    all_reduce_exposed_ms: float
    causes: dict[str, float]
    gaps: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)


def gpu_truth(run: Run) -> GpuTruth:
    """Return the parts of every step of the run, to the nanosecond."""
    plan = schedule(run)
    kernels, copy = _ruler(plan, *plan.kernels), _ruler(plan, plan.copy)
    reduce, loss = _ruler(plan, plan.all_reduce), _ruler(plan, (plan.loss, 3 * US))
    busy = kernels | copy | reduce | loss
    wait = _ruler(plan, (HEAD, plan.ready - HEAD))
    gaps, sizes = _by_size(~busy)
    return GpuTruth(
        kernel_ms=_ms(kernels),
        busy_ms=_ms(busy),
        idle_ms=_ms(~busy),
        exposed_wait_ms=_ms(wait & ~busy),
        copy_exposed_ms=_ms(copy & ~kernels & ~reduce),
        all_reduce_exposed_ms=_ms(reduce & ~kernels),
        causes=_causes(run, plan, busy, wait),
        gaps=gaps,
        sizes=sizes,
    )


def _causes(run: Run, plan: Schedule, busy: Ruler, wait: Ruler) -> dict[str, float]:
    call = _ruler(plan, (0, plan.call_end))
    launched = plan.launches[-1] + round(run.dispatch_us * US)
    loss_copy = (launched - US // 10 + US, (round(run.dispatch_us * US) - US // 10) // 2)
    dispatching = _ruler(plan, (20 * US, launched - 10 * US), loss_copy)
    eager = _ruler(plan, (7 * US, plan.call_end - 25 * US))
    unexplained = ~busy
    causes = {}
    claims = {
        "waiting for input": wait,
        "between steps": ~call,
        "work already launched": _launched_before(run, plan, ~busy),
        "launching work": dispatching,
        "running Python": ~eager,
    }
    for cause, claimed in claims.items():
        causes[cause] = _ms(unexplained & claimed)
        unexplained = unexplained & ~claimed
    return causes | {"unknown cause": _ms(unexplained)}


def _launched_before(run: Run, plan: Schedule, idle: Ruler) -> Ruler:
    """Return the gaps before work that was launched before the gap began."""
    length = round(run.dispatch_us * US) - US // 10
    ready = {
        kernel // NS: at + length // 4 + length // 2
        for at, (kernel, _) in zip(plan.launches, plan.kernels, strict=True)
    }
    after_all = plan.launches[-1] + length
    ready[plan.loss // NS] = after_all + US + length // 2
    ready[plan.all_reduce[0] // NS] = max(ready.get(plan.all_reduce[0] // NS, 0), after_all + length // 2)
    queued = np.zeros_like(idle)
    for start, end in _runs(idle):
        if end in ready and ready[end] <= start * NS:
            queued[start:end] = True
    return queued


def _by_size(idle: Ruler) -> tuple[dict[str, int], dict[str, float]]:
    gaps, sizes = dict.fromkeys((*EDGES_NS, LONGEST), 0), dict.fromkeys((*EDGES_NS, LONGEST), 0.0)
    for start, end in _runs(idle):
        size = next((name for name, edge in EDGES_NS.items() if end - start < edge), LONGEST)
        gaps[size] += 1
        sizes[size] += (end - start) * NS / MS
    return gaps, sizes


def _runs(ruler: Ruler) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], ruler, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _ruler(plan: Schedule, *spans: tuple[int, int]) -> Ruler:
    """Return a truth value for each nanosecond of a step: whether it lies in a span (start, duration), in ps."""
    ruler = np.zeros(plan.end // NS, bool)
    for start, length in spans:
        ruler[start // NS : (start + length) // NS] = True
    return ruler


def _ms(ruler: Ruler) -> float:
    return int(ruler.sum()) * NS / MS
