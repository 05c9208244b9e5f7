"""The conditions of a run: what two runs must share before their times can be compared."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tfdoctor.diagnosis import Conditions
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.memory import DeviceMemory, HostMemory
from tfdoctor.facts.machine.samples import GpuClocks, Samples
from tfdoctor.facts.operations.matmuls import MatrixUnit
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.savings.operation_groups import OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Stage

NO_BATCH = "the recording does not contain the batch size"
NO_MEMORY = "the memory of the run was not sampled"
NO_WORK = "the trace does not show the arithmetic of each matmul and convolution"


def conditions(chart: Chart) -> Conditions:
    """Gather what is known of the machine, its load and the batch."""
    recording, hardware, program = chart.fact(Recording), chart.get(Hardware), chart.get(Program)
    samples, memory, device = chart.get(Samples), chart.get(HostMemory), chart.get(DeviceMemory)
    unit, pace = chart.get(MatrixUnit), chart.get(UntracedPace)
    found = Conditions(
        cpu_model=recording.manifest.host.cpu_model if recording.manifest else "",
        cores_usable=(hardware.cores if hardware else None) or None,
        cores_run=samples.run_cores if samples else None,
        cores_other=samples.other_cores if samples else None,
        gpu_mhz=_gpu_mhz(chart.get(GpuClocks)),
        batch_size=program.batch_size if program else None,
        host_bytes=memory.by_run if memory else None,
        device_bytes=max(one.used for one in device.allocators) if device else None,
        untraced_ms=pace.step_ms if pace else None,
        matrix_unit=unit.utilization if unit else None,
    )
    least_ms, open_ms = _limit(chart)
    found = replace(found, least_ms=least_ms, open_ms=open_ms)
    return replace(found, missing=dict(_missing(chart, found)))


def _limit(chart: Chart) -> tuple[float | None, float]:
    """Return the least time of the step's operations, as far as it is known, and the time of the others; ms.

    Both are of the shown step, without the profiler's cost.
    """
    known, model = chart.get(OperationGroups), chart.get(StepModel)
    if known is None:
        return None, 0.0
    kept = model.kept(Stage.DEVICE) if model else 1.0
    least = sum(min(one.least_ms, one.ms) for one in known.groups if one.least_ms is not None)
    unknown = sum(one.ms for one in known.groups if one.least_ms is None)
    return least * kept, unknown * kept


def _missing(chart: Chart, found: Conditions) -> Iterator[tuple[str, str]]:
    """Yield why figures are missing: their fact is, or it does not have them."""
    breakdown = chart.get(Breakdown)
    if breakdown and breakdown.unseen_input and not breakdown["input"]:
        yield "input", breakdown.unseen_input
    if found.batch_size is None:
        yield "batch_size", chart.why_missing(Program) or NO_BATCH
    if found.host_bytes is None:
        yield "host_bytes", chart.why_missing(HostMemory) or NO_MEMORY
    if found.device_bytes is None:
        yield "device_bytes", chart.why_missing(DeviceMemory)
    if found.matrix_unit is None:
        yield "matrix_unit", chart.why_missing(MatrixUnit) or NO_WORK
    if found.least_ms is None:
        yield "least_ms", chart.why_missing(OperationGroups)
    elif found.open_ms:
        yield "open_ms", _why_open(chart.get(OperationGroups))


def _why_open(known: OperationGroups | None) -> str:
    """Return why the least time of most of the time is unknown for which it is."""
    times: dict[str, float] = {}
    for group in known.groups if known else ():
        if group.least_ms is None:
            times[group.missing] = times.get(group.missing, 0.0) + group.ms
    return max(times, key=lambda why: times[why])


def _gpu_mhz(clocks: GpuClocks | None) -> float | None:
    """Return the mean clock of the GPUs while they were busy."""
    known = [gpu.mean_mhz for gpu in clocks.gpus if gpu.mean_mhz] if clocks else []
    return float(np.mean(known)) if known else None
