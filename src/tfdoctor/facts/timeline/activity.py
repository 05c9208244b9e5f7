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
from tfdoctor.facts.timeline.work import Work, tabulate
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
            work = tabulate(compiled_work(trace, xla_programs))
            return cls(wait, {Stage.DEVICE: work}, Intervals())
        captured = captured_executions(trace)
        training = training_executions(trace, captured)
        computing = host_operations(trace, captured - training, training)
        if device.kind == DeviceKind.CPU:
            stages = _by_stage(computing)
            return cls(wait, stages, Intervals(), within_data=bool(training))
        stages = work_by_stage(device, xla_programs, xla_operations) if device.busiest else {}
        return cls(wait, stages, computing.spans(), str(device.missing or ""), bool(training))

    def of(self, stage: Stage) -> Intervals:
        """Return when a stage was at work."""
        return self.stages[stage].spans() if stage in self.stages else Intervals()


def _by_stage(work: Work) -> dict[Stage, Work]:
    """Separate a CPU's collectives, in which it mostly waits for other hosts, from its computing."""
    collective = [bool(COLLECTIVE_OPERATION.fullmatch(label[1])) for label in work.labels]
    if not any(collective):
        return {Stage.DEVICE: work}
    waits = np.array(collective, bool)[work.label]
    return {Stage.DEVICE: work.only(~waits), Stage.COLLECTIVE: work.only(waits)}
