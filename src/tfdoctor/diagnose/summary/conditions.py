"""The conditions of a run: what two runs must share before their times can be compared."""

import numpy as np

from tfdoctor.diagnosis import Conditions
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.machine.device_memory import DeviceMemory
from tfdoctor.facts.machine.gpu_clocks import BUSY_PCT
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.matmuls.matrix_unit import MatrixUnit
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.recording import Recording


def conditions(chart: Chart) -> Conditions:
    """Gather what is known of the machine, its load and the batch."""
    recording, hardware, program = chart.fact(Recording), chart.get(Hardware), chart.get(Program)
    samples, memory, device = chart.get(Samples), chart.get(HostMemory), chart.get(DeviceMemory)
    unit, pace = chart.get(MatrixUnit), chart.get(UntracedPace)
    return Conditions(
        cpu_model=recording.manifest.host.cpu_model if recording.manifest else "",
        cores_usable=(hardware.cores if hardware else None) or None,
        cores_run=samples.run_cores if samples else None,
        cores_other=samples.other_cores if samples else None,
        gpu_mhz=_gpu_mhz(recording),
        batch_size=program.batch_size if program else None,
        host_bytes=memory.by_run if memory else None,
        device_bytes=max(one.used for one in device.allocators) if device else None,
        untraced_ms=pace.step_ms if pace else None,
        matrix_unit=unit.utilization if unit else None,
    )


def _gpu_mhz(recording: Recording) -> float | None:
    clocks = [
        float(gpu.sm_mhz)
        for sample in recording.samples
        for gpu in sample.gpu
        if gpu.visible is not False and (gpu.gpu_pct or 0) >= BUSY_PCT and gpu.sm_mhz
    ]
    return float(np.mean(clocks)) if clocks else None
