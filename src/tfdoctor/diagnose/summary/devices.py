"""The time of accelerators in a report: kernels, idle gaps and copies of GPUs, the parts of TPU cores' time."""

from collections.abc import Callable, Iterable, Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.gpu.activity import CLEAR, PAGEABLE, PINNED, UNKNOWN, Collectives, Transfer, Transfers
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleGaps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.steps.steps import STEP, RoundUnit
from tfdoctor.facts.tpu.time import COPIES, CopyPlace, TpuLaunches, TpuTime
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import Quantity, bandwidth, count, ms, nbytes, ratio
from tfdoctor.terms.verdict import Measure

# Bytes. The time of smaller copies is mostly latency, so their rate says nothing about the bus.
MEANINGFUL = 65_536
SPREAD = 0.05  # Share of the compute time. A smaller difference between cores is normal.

MEMORY = {PAGEABLE: "pageable host memory", PINNED: "pinned host memory", UNKNOWN: "unknown kind of host memory"}

# A figure with its label and its unit; None where it is unknown, or where nothing is to be said of it.
Row = tuple[str, Callable[[float], Quantity], float | None]


def measures(rows: Iterable[Row]) -> tuple[Measure, ...]:
    """Return the figures that are known."""
    return tuple(Measure(label, unit(value)) for label, unit, value in rows if value is not None)


def missing(chart: Chart) -> str:
    """Return why the time of the accelerators is unknown; "" where it is known."""
    device = chart.get(Device)
    on_tpu = device is not None and device.kind is DeviceKind.TPU
    return chart.why_missing(TpuTime if on_tpu else GpuUtilization)


def gpu_time(chart: Chart) -> tuple[Measure, ...]:
    """Return the parts of the GPU time, per step or, without steps, in the whole trace; none when unknown."""
    time, gaps, transfers = chart.get(GpuUtilization), chart.get(IdleGaps), chart.get(Transfers)
    rows = list[Row]()
    if time:
        rows += _kernels(time)
    if time and gaps:
        rows.append((f"{_short(time.busiest.name)} idle", ms, gaps.idle_ms))
        rows += ((f"GPU idle: {cause}", ms, value or None) for cause, value in gaps.causes.items())
        for size, number in gaps.gaps.items():
            rows.append((f"GPU idle in gaps {size}", ms, gaps.sizes[size] if number else None))
            rows.append((f"number of gaps {size}", count, number or None))
    for transfer in transfers.directions if transfers else ():
        rows += _copied(transfer)
    if (collectives := chart.get(Collectives)) and collectives.kinds:
        rows.append(("collectives", ms, collectives.ms))
        rows.append(("collectives, while no other kernel runs", ms, collectives.exposed_ms))
        rows += ((f"collectives, {kind}", count, calls) for kind, calls in collectives.kinds)
    return measures(rows)


def _kernels(time: GpuUtilization) -> Iterator[Row]:
    yield "step (median)" if time.unit == STEP else "whole trace", ms, time.round_ms
    for gpu in time.gpus:
        where = "" if gpu.kernel_ms else ", outside the steps"
        yield f"kernel time of {_short(gpu.name)}{where}", ms, gpu.kernel_ms or gpu.traced_ms or None
    yield "GPUs that ran no kernel", count, sum(1 for gpu in time.gpus if not gpu.traced_ms) or None
    yield f"number of kernels on {_short(time.busiest.name)}", count, time.busiest.kernels
    within = " within its step" if time.wait_before_ms else ""
    yield "waiting for batches", ms, time.wait_ms
    yield "waiting for batches before the GPU step starts", ms, time.wait_before_ms or None
    yield f"waiting for batches while the GPU is idle{within}", ms, time.exposed_wait_ms


def _short(name: str) -> str:
    """Return "GPU 4" for "/device:GPU:4"."""
    return f"GPU {name.rpartition(':')[2]}"


def _copied(copies: Transfer) -> Iterator[Row]:
    what = "memory cleared" if copies.direction is CLEAR else f"copies {copies.direction}"
    yield what, ms, copies.ms
    yield f"{what}, while no kernel runs", ms, copies.exposed_ms
    yield f"number of {what}", count, copies.count
    if copies.nbytes is not None:
        yield f"size of {what}", nbytes, copies.nbytes
        yield f"rate of {what}", bandwidth, copies.rate if copies.nbytes >= MEANINGFUL * copies.count else None
        for memory, size in copies.memory.items():
            yield f"{what}, {MEMORY[memory]}", nbytes, size or None


def tpu_time(chart: Chart) -> tuple[Measure, ...]:
    """Return the parts of the TPU time, per step or per run of the longest program; none where unknown."""
    time = chart.get(TpuTime)
    if time is None:
        return ()
    rows = [*_core(time)]
    if launches := chart.get(TpuLaunches):
        rows += [
            ("time between program runs (whole trace)", ms, launches.between_ms),
            ("waiting for the host to enqueue a program (whole trace)", ms, launches.late_ms),
        ]
    return measures(rows)


def _core(time: TpuTime) -> Iterator[Row]:
    core = time.busiest
    whole = f"run of {time.program} (not a training step)" if time.unit is RoundUnit.RUN else "step"
    yield f"{whole}, on the busiest core", ms, core.round_ms
    yield from ((part, ms, value or None) for part, value in core.parts.items())
    share = core.share(COPIES) if core.parts[COPIES] else None
    yield f"share of {COPIES} in the busy time of the core", ratio, share
    if core.copies:
        yield "waiting for asynchronous copies", ms, core.exposed_ms
        yield "asynchronous copies overlapped with compute", ms, core.hidden_ms
    if any(copy.where == CopyPlace.HOST for copy in core.copies):
        yield "copied to and from host memory", nbytes, core.host_bytes
        yield "copy rate to and from host memory", bandwidth, core.host_bytes / (core.round_ms * 1e-3)
    yield "busy cores", count, len(time.cores) if len(time.cores) > 1 else None
    yield "compute time difference between cores", ratio, time.uneven if time.uneven > SPREAD else None
    for number, skew in enumerate(time.barrier_skews_ms, start=1):
        yield f"barrier {number}: delay of the last core", ms, skew
