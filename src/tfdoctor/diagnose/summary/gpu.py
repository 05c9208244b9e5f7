"""What a report shows of the GPUs' time: kernels, idle gaps, copies and collectives of a typical step."""

from collections.abc import Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.gpu.idle_gaps import IdleGaps
from tfdoctor.facts.gpu.transfers import PAGEABLE, PINNED, UNKNOWN, Transfer, Transfers
from tfdoctor.facts.gpu.utilization import GpuUtilization
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.scale.collectives import Collectives
from tfdoctor.facts.steps.steady_steps import STEP
from tfdoctor.facts.tpu.time import TpuTime
from tfdoctor.kinds import DeviceKind
from tfdoctor.units import bandwidth, count, ms, nbytes
from tfdoctor.verdict import Measure

MEANINGFUL = 65_536
"""Bytes. Smaller copies take their latency, some microseconds, and tell nothing of the bus."""

MEMORY = {
    PAGEABLE: "pageable host memory",
    PINNED: "pinned host memory",
    UNKNOWN: "host memory of a kind that was not recorded",
}


def device_time(chart: Chart) -> tuple[Measure, ...]:
    """List where the GPUs' time goes, per step or, without steps, in the whole trace; () when unknown."""
    time, gaps = chart.get(GpuUtilization), chart.get(IdleGaps)
    transfers, collectives = chart.get(Transfers), chart.get(Collectives)
    return (
        *(_work(time) if time else ()),
        *(_idle(time, gaps) if time and gaps else ()),
        *(
            measure
            for one in (transfers.directions if transfers else ())
            for measure in _copies(one)
        ),
        *(_collectives(collectives) if collectives else ()),
    )


def device_time_missing(chart: Chart) -> str:
    """Return why the accelerators' time is not known, or "" where it is."""
    device = chart.get(Device)
    on_tpu = device is not None and device.kind is DeviceKind.TPU
    return chart.why_missing(TpuTime if on_tpu else GpuUtilization)


def _work(time: GpuUtilization) -> Iterator[Measure]:
    whole = "step (median)" if time.unit == STEP else "whole trace"
    yield Measure(whole, ms(time.round_ms))
    for gpu in time.gpus:
        kernels = f"kernels of {_short(gpu.name)}"
        if gpu.kernel_ms:
            yield Measure(kernels, ms(gpu.kernel_ms))
        elif gpu.traced_ms:
            yield Measure(f"{kernels}, all outside the step shown", ms(gpu.traced_ms))
    if idle := sum(1 for gpu in time.gpus if not gpu.traced_ms):
        yield Measure("GPUs without a kernel", count(idle))
    yield Measure(f"kernels that {_short(time.busiest.name)} runs", count(time.busiest.kernels))
    if time.wait_ms is not None:
        yield Measure("wait for batches", ms(time.wait_ms))
    if time.wait_before_ms:
        yield Measure("of it before the GPU's step begins", ms(time.wait_before_ms))
    if time.exposed_wait_ms is not None:
        within = " in its step" if time.wait_before_ms else ""
        yield Measure(f"wait for batches while the GPU idles{within}", ms(time.exposed_wait_ms))


def _short(name: str) -> str:
    """Return "GPU 4" for "/device:GPU:4"."""
    return f"GPU {name.rpartition(':')[2]}"


def _idle(time: GpuUtilization, gaps: IdleGaps) -> Iterator[Measure]:
    yield Measure(f"{_short(time.busiest.name)} idle", ms(gaps.idle_ms))
    for cause, value in gaps.causes.items():
        if value:
            yield Measure(f"idle, host: {cause}", ms(value))
    for size, number in gaps.gaps.items():
        if number:
            yield Measure(f"idle in gaps {size}", ms(gaps.sizes[size]))
            yield Measure(f"number of gaps {size}", count(number))


def _copies(copies: Transfer) -> Iterator[Measure]:
    what = "memory cleared" if copies.is_clearing else f"copies {copies.direction}"
    yield Measure(what, ms(copies.ms))
    yield Measure(f"{what}, while nothing computes", ms(copies.exposed_ms))
    yield Measure(f"{what}, number", count(copies.count))
    if copies.nbytes is None:
        return
    yield Measure(f"{what}, size", nbytes(copies.nbytes))
    if copies.rate is not None and copies.nbytes >= MEANINGFUL * copies.count:
        yield Measure(f"{what}, rate", bandwidth(copies.rate))
    for memory, size in copies.memory.items():
        if size:
            yield Measure(f"{what}, {MEMORY[memory]}", nbytes(size))


def _collectives(found: Collectives) -> Iterator[Measure]:
    if not found.kinds:
        return
    yield Measure("collectives", ms(found.ms))
    yield Measure("collectives, while nothing computes", ms(found.exposed_ms))
    for kind, calls in found.kinds:
        yield Measure(f"collectives, {kind}", count(calls))
