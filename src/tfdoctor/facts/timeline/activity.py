"""What ran when: the work of the devices and of the host's threads, as columns of events.

On a run without accelerator the device is the CPU, and its work the TensorFlow operations of the
training function; the operations of tf.data's functions run on the same thread pools and are
distinguished by the executor that ran them.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.timeline.device_work import Work, compiled_work, work_by_stage
from tfdoctor.facts.timeline.host_events import (
    executions_of,
    is_captured,
    is_named,
    leaves,
    operation_label,
    select,
    trainer_waits,
)
from tfdoctor.trace.names import ASSIGN, COLLECTIVE_OPERATION, GRADIENT, INPUT_THREAD, UPDATE


def host_operations(trace: Trace, foreign: set[int], training: set[int]) -> Work:
    """Gather the training function's operations, without tf.data's and without those that contain others."""
    types, lines = trace.host.types if trace.host else (), []
    is_operation = np.array([bool(operation_label(kind)) for kind in types], dtype=bool)
    theirs, own = (np.array(sorted(runs), np.uint64) for runs in (foreign, training))
    for line in trace.host_lines:
        of_data = line.name.startswith(INPUT_THREAD)
        if len(line) and (training or not of_data):
            runs = executions_of(line)
            # Few of the events on tf.data's own threads belong to the training.
            ours = np.isin(runs, own) if of_data else ~np.isin(runs, theirs)
            chosen = select(line, is_operation[line.kind] & ours)
            lines.append(select(chosen, leaves(chosen)))
    kinds = np.concatenate([np.zeros(0, np.int32), *(line.kind for line in lines)])
    starts = np.concatenate([np.zeros(0, np.int64), *(line.start_ps for line in lines)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(line.duration_ps for line in lines)])
    labels = tuple(operation_label(kind) or ("", "", kind.name) for kind in types)
    return Work(labels, kinds, starts, starts + lengths, types)


def training_executions(trace: Trace, captured: set[int]) -> set[int]:
    """Return the executions of tf.data that take gradients and change weights."""
    if not captured or trace.host is None:
        return set()
    names = [kind.name for kind in trace.host.types]
    gradients = np.array([bool(GRADIENT.search(name)) for name in names], bool)
    endings = (name.rpartition(":")[2] for name in names)
    changes = np.array([bool(UPDATE.fullmatch(one) or ASSIGN.fullmatch(one)) for one in endings], bool)
    executions = [
        {int(run) for line in trace.host.lines for run in np.unique(executions_of(line, wanted))}
        for wanted in (gradients, changes)
    ]
    return captured & executions[0] & executions[1]


def captured_executions(trace: Trace) -> set[int]:
    """Return the ids of the executions that tf.data started."""
    started: set[int] = set()
    for line in trace.host_lines:
        events, runs = line.stats.ids("id")
        started.update(runs[is_named(line, is_captured)[events]].tolist())
    return started


class Activity(Record, eq=False):
    """When each stage of the step was at work."""

    wait: Intervals  # the trainer waits for the next batch
    stages: dict[Stage, Work]  # DEVICE, TRANSFER, COLLECTIVE, INPUT (infeed) of the busiest device
    dispatch: Intervals  # the host's executor threads launch operations (accelerators only)
    missing: str = ""  # why the device's work is not known
    within_data: bool = False  # tf.data itself runs the training: `for x in dataset` in a graph

    @classmethod
    def measure(
        cls, trace: Trace, device: Device, framework: Framework, programs: XlaPrograms, operations: XlaOperations
    ) -> Self:
        """Sort all events of the host and of the busiest device."""
        wait = trainer_waits(trace.host_lines)
        if framework.foreign and device.kind == DeviceKind.CPU:
            return cls(wait, {Stage.DEVICE: compiled_work(trace, programs)}, Intervals())
        captured = captured_executions(trace)
        training = training_executions(trace, captured)
        computing = host_operations(trace, captured - training, training)
        if device.kind == DeviceKind.CPU:
            # In a CPU's collectives it mostly waits for other hosts.
            collective = [bool(COLLECTIVE_OPERATION.fullmatch(kind)) for _, kind, _ in computing.labels]
            waits = np.array(collective, bool)[computing.label]
            stages = {Stage.DEVICE: computing.only(~waits)}
            if any(collective):
                stages[Stage.COLLECTIVE] = computing.only(waits)
            return cls(wait, stages, Intervals(), within_data=bool(training))
        stages = work_by_stage(device, programs, operations) if device.busiest else {}
        return cls(wait, stages, computing.spans(), str(device.missing or ""), bool(training))

    def of(self, stage: Stage) -> Intervals:
        """Return when a stage was at work."""
        return self.stages[stage].spans() if stage in self.stages else Intervals()
