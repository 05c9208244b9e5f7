"""When things happen in a step on a GPU."""

from dataclasses import dataclass

from scripts.synthetic.gpus import GPUS, PAGEABLE, chip
from scripts.synthetic.host import input_work
from scripts.synthetic.run import READY, Run, Truth, compute, duration, operations
from scripts.synthetic.xspace import MS, US

HEAD = 30 * US
"""From the start of a step to asking for its batch."""

TAIL = 25 * US
"""From the loss's copy back to the host until the call returns."""

LATENCY = 4 * US
"""From a launch to the start of the kernel on an idle device."""


COPIED = 60 * US
"""What each copy of a detour takes: a megabyte or less."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When things happen in a step, ps from its start; launches and kernels by operation."""

    ready: int  # the batch is there
    copy: tuple[int, int]  # start, duration
    launches: tuple[int, ...]
    kernels: tuple[tuple[int, int], ...]  # start, duration
    all_reduce: tuple[int, int]  # start, duration
    loss: int  # is copied back
    call_end: int
    end: int
    lag: int = 0  # steps by which the kernels come after their launches
    detour: tuple[int, int] | None = None  # the copy to the host begins, and that back ends


def schedule(run: Run) -> Schedule:
    """Play one step through: the host launches, the device works, one after the other."""
    device, ops = chip(run), operations(run)
    ready = HEAD + max(READY, round(run.input_ms * MS))
    compiled = ready + round(run.compile_ms * MS)
    copy = (compiled + 8 * US, _copy_time(run))
    free = compiled if run.overlap else sum(copy)
    dispatch = round(run.dispatch_us * US)
    launches = [compiled + 10 * US + at * dispatch for at in range(len(ops))]
    detour = None
    if run.ahead:
        return _ahead(run, ready, copy, tuple(launches))
    placed: list[tuple[int, int]] = []
    for at, op in enumerate(ops):
        if run.detour_ms and at == len(ops) // 2:
            detour = (free, free + 2 * COPIED + round(run.detour_ms * MS))
            late = max(0, detour[1] - launches[at])
            launches[at:] = [launch + late for launch in launches[at:]]
        start = max(launches[at] + dispatch + LATENCY, free)
        placed.append((start, duration(op, device)))
        free = sum(placed[-1]) + round(run.gap_us * US)
    all_reduce = (sum(placed[-1]) - round(run.hidden_ms * MS), round(run.all_reduce_ms * MS))
    loss = max(sum(placed[-1]), sum(copy), sum(all_reduce)) + 5 * US
    call_end = loss + TAIL
    end = call_end + round(run.between_ms * MS)
    kernels = tuple(placed)
    return Schedule(ready, copy, tuple(launches), kernels, all_reduce, loss, call_end, end, detour=detour)


def _ahead(run: Run, ready: int, copy: tuple[int, int], launches: tuple[int, ...]) -> Schedule:
    """Place the kernels that the step before launched back to back, from the step's start on.

    The host, which is faster, stands still in its launches until the GPU's queue has room again.

    Raises:
        ValueError: the host is slower than the GPU, and so never ahead.
    """
    device, placed, free = chip(run), list[tuple[int, int]](), 0
    for op in operations(run):
        placed.append((free, duration(op, device)))
        free = sum(placed[-1]) + round(run.gap_us * US)
    between = round(run.between_ms * MS)
    if launches[-1] + TAIL + between > free:
        raise ValueError("a host that is slower than its GPU launches nothing ahead")
    return Schedule(ready, copy, launches, tuple(placed), (free, 0), free, free - between, free, lag=1)


def _copy_time(run: Run) -> int:
    """Return how long the batch's copy takes, ps."""
    rate = GPUS[run.device].pinned if run.copy == "pinned" else PAGEABLE
    return round(run.network.image_bytes / rate * 1e9) * 1000


def truth(run: Run) -> Truth:
    """Return what every step of the run is made of."""
    plan = schedule(run)
    copied, busy = plan.copy, plan.kernels
    hidden = sum(max(0, min(sum(copied), s + d) - max(copied[0], s)) for s, d in busy)
    return Truth(
        steps=run.steps,
        step_ms=plan.end / MS,
        input_wait_ms=(plan.ready - HEAD) / MS,
        input_work_ms=input_work(run, plan.end) / MS,
        copy_ms=copied[1] / MS,
        copy_bytes=run.network.image_bytes,
        copy_exposed_ms=(copied[1] - hidden) / MS,
        between_ms=run.between_ms,
        **compute(run, chip(run)),  # type: ignore[arg-type]  # counts are whole numbers
    )
