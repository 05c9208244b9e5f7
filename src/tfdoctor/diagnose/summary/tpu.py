"""TPU time in a report: the parts of a core's time, MXU use, padding, copies and launches."""

from collections.abc import Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.steps.steps import RoundUnit
from tfdoctor.facts.tpu.operations import Padding, TpuOperations
from tfdoctor.facts.tpu.time import COPIES, CopyPlace, TpuLaunches, TpuTime
from tfdoctor.terms.units import bandwidth, count, ms, nbytes, ratio
from tfdoctor.terms.verdict import Measure

SPREAD = 0.05  # Share of the compute time. A smaller difference between cores is normal.


def tpu_time(chart: Chart) -> tuple[Measure, ...]:
    """List the parts of the TPU time, per step or per run of the longest program; () where unknown."""
    time = chart.get(TpuTime)
    if time is None:
        return ()
    operations, padding = chart.get(TpuOperations), chart.get(Padding)
    launches = chart.get(TpuLaunches)
    return (
        *_parts(time),
        *_copies(time),
        *_cores(time),
        *(_operations(operations) if operations else ()),
        *(_padding(padding) if padding else ()),
        *(_launches(launches) if launches else ()),
    )


def _parts(time: TpuTime) -> Iterator[Measure]:
    core = time.busiest
    whole = f"run of {time.program} (not a training step)" if time.unit is RoundUnit.RUN else "step"
    yield Measure(f"{whole}, on the busiest core", ms(core.round_ms))
    for part, value in core.parts.items():
        if value:
            yield Measure(part, ms(value))
    if core.parts[COPIES]:
        yield Measure(f"share of {COPIES} in the busy time of the core", ratio(core.share(COPIES)))


def _copies(time: TpuTime) -> Iterator[Measure]:
    core = time.busiest
    if core.copies:
        yield Measure("waiting for asynchronous copies", ms(core.exposed_ms))
        yield Measure("asynchronous copies overlapped with compute", ms(core.hidden_ms))
    if any(copy.where == CopyPlace.HOST for copy in core.copies):
        yield Measure("copied to and from host memory", nbytes(core.host_bytes))
        yield Measure("copy rate to and from host memory", bandwidth(core.host_bytes / (core.round_ms * 1e-3)))


def _cores(time: TpuTime) -> Iterator[Measure]:
    if len(time.cores) > 1:
        yield Measure("busy cores", count(len(time.cores)))
    if time.uneven > SPREAD:
        yield Measure("compute time difference between cores", ratio(time.uneven))
    for number, skew in enumerate(time.barrier_skews_ms, start=1):
        yield Measure(f"barrier {number}: delay of the last core", ms(skew))


def _operations(operations: TpuOperations) -> Iterator[Measure]:
    if operations.mxu_use is not None:
        yield Measure("MXU utilization during compute", ratio(operations.mxu_use))
    yield Measure("memory-bound operations", ms(operations.memory_bound_ms))
    if operations.float32_ms:
        yield Measure("matmuls with float32 operands", ms(operations.float32_ms))


def _padding(padding: Padding) -> Iterator[Measure]:
    yield Measure(f"useful share of the matmul width (the rest pads to {padding.side})", ratio(padding.useful))
    if padding.depth_useful is not None:
        label = f"useful share of the matmul depth (the rest pads to {padding.side}; without convolutions)"
        yield Measure(label, ratio(padding.depth_useful))
    if padding.stored_useful is not None:
        tiles = ", ".join(" x ".join(map(str, tile)) for tile in padding.tiles)
        label = f"useful share of the matmul arrays in memory (the rest pads to tiles: {tiles})"
        yield Measure(label, ratio(padding.stored_useful))
    if padding.unknown_ms:
        yield Measure("matmuls of unknown shape", ms(padding.unknown_ms))


def _launches(launches: TpuLaunches) -> Iterator[Measure]:
    yield Measure("time between program runs (whole trace)", ms(launches.between_ms))
    if launches.late_ms is not None:
        yield Measure("waiting for the host to enqueue a program (whole trace)", ms(launches.late_ms))
