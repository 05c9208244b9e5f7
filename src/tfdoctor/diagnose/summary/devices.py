"""The time of accelerators in a report: kernels, idle gaps and copies of GPUs, the parts of TPU cores' time."""

from collections.abc import Callable, Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.gpu.activity import CLEAR, PAGEABLE, PINNED, UNKNOWN, Collectives, Transfer, Transfers
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleGaps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.steps.steps import STEP, RoundUnit
from tfdoctor.facts.tpu.operations import Padding, TpuOperations
from tfdoctor.facts.tpu.time import COPIES, CopyPlace, TpuLaunches, TpuTime
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import Quantity, bandwidth, count, ms, nbytes, ratio
from tfdoctor.terms.verdict import Measure

# Bytes. The time of smaller copies is mostly latency, so their rate says nothing about the bus.
MEANINGFUL = 65_536
SPREAD = 0.05  # Share of the compute time. A smaller difference between cores is normal.

MEMORY = {PAGEABLE: "pageable host memory", PINNED: "pinned host memory", UNKNOWN: "unknown kind of host memory"}


def measures(*rows: tuple[str, Callable[[float], Quantity], float | None]) -> Iterator[Measure]:
    """Yield the figures that are known, each with its label and in its unit."""
    return (Measure(label, unit(value)) for label, unit, value in rows if value is not None)


def missing(chart: Chart) -> str:
    """Return why the time of the accelerators is unknown; "" where it is known."""
    device = chart.get(Device)
    on_tpu = device is not None and device.kind is DeviceKind.TPU
    return chart.why_missing(TpuTime if on_tpu else GpuUtilization)


def gpu_time(chart: Chart) -> Iterator[Measure]:
    """Yield the parts of the GPU time, per step or, without steps, in the whole trace; nothing when unknown."""
    time, gaps = chart.get(GpuUtilization), chart.get(IdleGaps)
    transfers, collectives = chart.get(Transfers), chart.get(Collectives)
    if time:
        yield from _kernels(time)
        if gaps:
            yield from _idle(time, gaps)
    for transfer in transfers.directions if transfers else ():
        yield from _copied(transfer)
    if collectives and collectives.kinds:
        yield Measure("collectives", ms(collectives.ms))
        yield Measure("collectives, while no other kernel runs", ms(collectives.exposed_ms))
        for kind, calls in collectives.kinds:
            yield Measure(f"collectives, {kind}", count(calls))


def _kernels(time: GpuUtilization) -> Iterator[Measure]:
    yield Measure("step (median)" if time.unit == STEP else "whole trace", ms(time.round_ms))
    for gpu in time.gpus:
        where, time_ms = ("", gpu.kernel_ms) if gpu.kernel_ms else (", outside the steps", gpu.traced_ms)
        if time_ms:
            yield Measure(f"kernel time of {_short(gpu.name)}{where}", ms(time_ms))
    if idle := sum(1 for gpu in time.gpus if not gpu.traced_ms):
        yield Measure("GPUs that ran no kernel", count(idle))
    yield Measure(f"number of kernels on {_short(time.busiest.name)}", count(time.busiest.kernels))
    within = " within its step" if time.wait_before_ms else ""
    yield from measures(
        ("waiting for batches", ms, time.wait_ms),
        ("waiting for batches before the GPU step starts", ms, time.wait_before_ms or None),
        (f"waiting for batches while the GPU is idle{within}", ms, time.exposed_wait_ms),
    )


def _short(name: str) -> str:
    """Return "GPU 4" for "/device:GPU:4"."""
    return f"GPU {name.rpartition(':')[2]}"


def _idle(time: GpuUtilization, gaps: IdleGaps) -> Iterator[Measure]:
    yield Measure(f"{_short(time.busiest.name)} idle", ms(gaps.idle_ms))
    for cause, value in gaps.causes.items():
        if value:
            yield Measure(f"GPU idle: {cause}", ms(value))
    for size, number in gaps.gaps.items():
        if number:
            yield Measure(f"GPU idle in gaps {size}", ms(gaps.sizes[size]))
            yield Measure(f"number of gaps {size}", count(number))


def _copied(copies: Transfer) -> Iterator[Measure]:
    what = "memory cleared" if copies.direction is CLEAR else f"copies {copies.direction}"
    yield Measure(what, ms(copies.ms))
    yield Measure(f"{what}, while no kernel runs", ms(copies.exposed_ms))
    yield Measure(f"number of {what}", count(copies.count))
    if copies.nbytes is None:
        return
    yield Measure(f"size of {what}", nbytes(copies.nbytes))
    if copies.rate is not None and copies.nbytes >= MEANINGFUL * copies.count:
        yield Measure(f"rate of {what}", bandwidth(copies.rate))
    for memory, size in copies.memory.items():
        if size:
            yield Measure(f"{what}, {MEMORY[memory]}", nbytes(size))


def tpu_time(chart: Chart) -> Iterator[Measure]:
    """Yield the parts of the TPU time, per step or per run of the longest program; nothing where unknown."""
    time = chart.get(TpuTime)
    if time is None:
        return
    yield from _core(time)
    if operations := chart.get(TpuOperations):
        yield from measures(
            ("MXU utilization during compute", ratio, operations.mxu_use),
            ("memory-bound operations", ms, operations.memory_bound_ms),
            ("matmuls with float32 operands", ms, operations.float32_ms or None),
        )
    if padding := chart.get(Padding):
        side, tiles = padding.side, ", ".join(" x ".join(map(str, tile)) for tile in padding.tiles)
        depth = f"useful share of the matmul depth (the rest pads to {side}; without convolutions)"
        stored = f"useful share of the matmul arrays in memory (the rest pads to tiles: {tiles})"
        yield from measures(
            (f"useful share of the matmul width (the rest pads to {side})", ratio, padding.useful),
            (depth, ratio, padding.depth_useful),
            (stored, ratio, padding.stored_useful),
            ("matmuls of unknown shape", ms, padding.unknown_ms or None),
        )
    if launches := chart.get(TpuLaunches):
        yield from measures(
            ("time between program runs (whole trace)", ms, launches.between_ms),
            ("waiting for the host to enqueue a program (whole trace)", ms, launches.late_ms),
        )


def _core(time: TpuTime) -> Iterator[Measure]:
    core = time.busiest
    whole = f"run of {time.program} (not a training step)" if time.unit is RoundUnit.RUN else "step"
    yield Measure(f"{whole}, on the busiest core", ms(core.round_ms))
    for part, value in core.parts.items():
        if value:
            yield Measure(part, ms(value))
    if core.parts[COPIES]:
        yield Measure(f"share of {COPIES} in the busy time of the core", ratio(core.share(COPIES)))
    if core.copies:
        yield Measure("waiting for asynchronous copies", ms(core.exposed_ms))
        yield Measure("asynchronous copies overlapped with compute", ms(core.hidden_ms))
    if any(copy.where == CopyPlace.HOST for copy in core.copies):
        yield Measure("copied to and from host memory", nbytes(core.host_bytes))
        yield Measure("copy rate to and from host memory", bandwidth(core.host_bytes / (core.round_ms * 1e-3)))
    if len(time.cores) > 1:
        yield Measure("busy cores", count(len(time.cores)))
    if time.uneven > SPREAD:
        yield Measure("compute time difference between cores", ratio(time.uneven))
    for number, skew in enumerate(time.barrier_skews_ms, start=1):
        yield Measure(f"barrier {number}: delay of the last core", ms(skew))
