"""GPU time in a report: kernels, idle gaps, copies and collectives of a typical step."""

from collections.abc import Iterator

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.gpu.activity import CLEAR, PAGEABLE, PINNED, UNKNOWN, Collectives, Transfer, Transfers
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleGaps
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.steps.steps import STEP
from tfdoctor.facts.tpu.time import TpuTime
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import bandwidth, count, ms, nbytes
from tfdoctor.terms.verdict import Measure

# Bytes. The time of smaller copies is mostly latency, so their rate says nothing about the bus.
MEANINGFUL = 65_536

MEMORY = {PAGEABLE: "pageable host memory", PINNED: "pinned host memory", UNKNOWN: "unknown kind of host memory"}


def device_time(chart: Chart) -> tuple[Measure, ...]:
    """List the parts of the GPU time, per step or, without steps, in the whole trace; () when unknown."""
    time, gaps = chart.get(GpuUtilization), chart.get(IdleGaps)
    transfers, collectives = chart.get(Transfers), chart.get(Collectives)
    return (
        *(_work(time) if time else ()),
        *(_idle(time, gaps) if time and gaps else ()),
        *(measure for transfer in (transfers.directions if transfers else ()) for measure in _copies(transfer)),
        *(_collectives(collectives) if collectives else ()),
    )


def device_time_missing(chart: Chart) -> str:
    """Return why the time of the accelerators is unknown; "" where it is known."""
    device = chart.get(Device)
    on_tpu = device is not None and device.kind is DeviceKind.TPU
    return chart.why_missing(TpuTime if on_tpu else GpuUtilization)


def _work(time: GpuUtilization) -> Iterator[Measure]:
    whole = "step (median)" if time.unit == STEP else "whole trace"
    yield Measure(whole, ms(time.round_ms))
    for gpu in time.gpus:
        kernels = f"kernel time of {_short(gpu.name)}"
        if gpu.kernel_ms:
            yield Measure(kernels, ms(gpu.kernel_ms))
        elif gpu.traced_ms:
            yield Measure(f"{kernels}, outside the steps", ms(gpu.traced_ms))
    if idle := sum(1 for gpu in time.gpus if not gpu.traced_ms):
        yield Measure("GPUs that ran no kernel", count(idle))
    yield Measure(f"number of kernels on {_short(time.busiest.name)}", count(time.busiest.kernels))
    yield from _waits(time)


def _waits(time: GpuUtilization) -> Iterator[Measure]:
    if time.wait_ms is not None:
        yield Measure("waiting for batches", ms(time.wait_ms))
    if time.wait_before_ms:
        yield Measure("waiting for batches before the GPU step starts", ms(time.wait_before_ms))
    if time.exposed_wait_ms is not None:
        within = " within its step" if time.wait_before_ms else ""
        label = f"waiting for batches while the GPU is idle{within}"
        yield Measure(label, ms(time.exposed_wait_ms))


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


def _copies(copies: Transfer) -> Iterator[Measure]:
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


def _collectives(collectives: Collectives) -> Iterator[Measure]:
    if not collectives.kinds:
        return
    yield Measure("collectives", ms(collectives.ms))
    yield Measure("collectives, while no other kernel runs", ms(collectives.exposed_ms))
    for kind, calls in collectives.kinds:
        yield Measure(f"collectives, {kind}", count(calls))
