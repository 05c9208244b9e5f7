"""What a report shows of a TPU's time: its cores' parts, the MXU, padding, copies and launches."""

from collections.abc import Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.steps.steady_steps import RoundUnit
from tfdoctor.facts.tpu.copies import HOST
from tfdoctor.facts.tpu.launches import TpuLaunches
from tfdoctor.facts.tpu.operations import TpuOperations
from tfdoctor.facts.tpu.padding import Padding
from tfdoctor.facts.tpu.time import COPIES, TpuTime
from tfdoctor.units import bandwidth, count, ms, nbytes, ratio
from tfdoctor.verdict import Measure

SPREAD = 0.05
"""Of the computing time: below, the cores are as even as cores are."""


def tpu_time(chart: Chart) -> tuple[Measure, ...]:
    """List where the TPU's time goes, per step or per run of the longest program; () where unknown."""
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
    whole = (
        f"run of {time.program}, which is no training step"
        if time.unit is RoundUnit.RUN
        else "step"
    )
    yield Measure(f"{whole}, on the busiest core", ms(core.round_ms))
    for part, value in core.parts.items():
        if value:
            yield Measure(part, ms(value))
    if core.parts[COPIES]:
        yield Measure(f"share of {COPIES} in the time of its operations", ratio(core.share(COPIES)))


def _copies(time: TpuTime) -> Iterator[Measure]:
    core = time.busiest
    if core.copies:
        yield Measure("waits for asynchronous work", ms(core.exposed_ms))
        yield Measure("asynchronous work beside computing", ms(core.hidden_ms))
    if any(copy.where == HOST for copy in core.copies):
        yield Measure("copied to and from the host's memory", nbytes(core.host_bytes))
        yield Measure("the same, per time", bandwidth(core.host_bytes / (core.round_ms * 1e-3)))


def _cores(time: TpuTime) -> Iterator[Measure]:
    if len(time.cores) > 1:
        yield Measure("cores at work", count(len(time.cores)))
    if time.uneven > SPREAD:
        yield Measure("spread of computing over the cores", ratio(time.uneven))
    for number, skew in enumerate(time.barrier_skews_ms, start=1):
        yield Measure(f"barrier {number}: the last core after the first", ms(skew))


def _operations(operations: TpuOperations) -> Iterator[Measure]:
    if operations.mxu_use is not None:
        yield Measure("MXU use while computing", ratio(operations.mxu_use))
    yield Measure("operations that the memory bounds", ms(operations.memory_bound_ms))
    if operations.float32_ms:
        yield Measure("products of float32 operands", ms(operations.float32_ms))


def _padding(padding: Padding) -> Iterator[Measure]:
    yield Measure(f"products' width that is no padding to {padding.side}", ratio(padding.useful))
    if padding.depth_useful is not None:
        label = f"depth of products without a window that is no padding to {padding.side}"
        yield Measure(label, ratio(padding.depth_useful))
    if padding.stored_useful is not None:
        tiles = ", ".join(" x ".join(map(str, tile)) for tile in padding.tiles)
        label = f"products' arrays in memory that is no padding to tiles ({tiles})"
        yield Measure(label, ratio(padding.stored_useful))
    if padding.unknown_ms:
        yield Measure("products of unknown shapes", ms(padding.unknown_ms))


def _launches(launches: TpuLaunches) -> Iterator[Measure]:
    yield Measure("whole trace: between runs of programs", ms(launches.between_ms))
    if launches.late_ms is not None:
        yield Measure("whole trace: of it until the host enqueued the next", ms(launches.late_ms))
