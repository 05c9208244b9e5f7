"""The conditions of a run: what two runs must share before their times can be compared."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tfdoctor.diagnosis import Conditions
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.device_memory import DeviceMemory
from tfdoctor.facts.machine.gpu_clocks import GpuClocks
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.matmuls.matrix_unit import MatrixUnit
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.recording import Recording

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
    return replace(found, missing=dict(_missing(chart, found)))


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


def _gpu_mhz(clocks: GpuClocks | None) -> float | None:
    """Return the mean clock of the GPUs while they were busy."""
    known = [gpu.mean_mhz for gpu in clocks.gpus if gpu.mean_mhz] if clocks else []
    return float(np.mean(known)) if known else None
