"""What ran when: the work of the devices and of the host's threads, as columns of events.

On a run without accelerator the device is the CPU, and its work the TensorFlow operations of the
training function; the operations of tf.data's functions run on the same thread pools and are
distinguished by the executor that ran them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.timeline.device_work import work_by_stage
from tfdoctor.facts.timeline.host_operations import captured_executions, host_operations, training_executions
from tfdoctor.facts.timeline.trainer import trainer_waits
from tfdoctor.facts.timeline.work import Work
from tfdoctor.facts.timeline.xla_cpu_work import compiled_work
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import COLLECTIVE_OPERATION


@dataclass(frozen=True, slots=True, eq=False)
class Activity:
    """When each stage of the step was at work."""

    wait: Intervals  # the trainer waits for the next batch
    stages: dict[Stage, Work]  # DEVICE, TRANSFER, COLLECTIVE, INPUT (infeed) of the busiest device
    dispatch: Intervals  # the host's executor threads launch operations (accelerators only)
    missing: str = ""  # why the device's work is not known
    within_data: bool = False  # tf.data itself runs the training: `for x in dataset` in a graph

    @classmethod
    def measure(
        cls,
        trace: Trace,
        device: Device,
        framework: Framework,
        xla_programs: XlaPrograms,
        xla_operations: XlaOperations,
    ) -> Self:
        """Sort all events of the host and of the busiest device."""
        wait = trainer_waits(trace.host_lines)
        if framework.foreign and device.kind == DeviceKind.CPU:
            return cls(wait, {Stage.DEVICE: compiled_work(trace, xla_programs)}, Intervals())
        captured = captured_executions(trace)
        training = training_executions(trace, captured)
        computing = host_operations(trace, captured - training, training)
        if device.kind == DeviceKind.CPU:
            # In a CPU's collectives it mostly waits for other hosts.
            collective = [bool(COLLECTIVE_OPERATION.fullmatch(kind)) for _, kind, _ in computing.labels]
            waits = np.array(collective, bool)[computing.label]
            stages = {Stage.DEVICE: computing}
            if any(collective):
                stages = {Stage.DEVICE: computing.only(~waits), Stage.COLLECTIVE: computing.only(waits)}
            return cls(wait, stages, Intervals(), within_data=bool(training))
        stages = work_by_stage(device, xla_programs, xla_operations) if device.busiest else {}
        return cls(wait, stages, computing.spans(), str(device.missing or ""), bool(training))

    def of(self, stage: Stage) -> Intervals:
        """Return when a stage was at work."""
        return self.stages[stage].spans() if stage in self.stages else Intervals()
