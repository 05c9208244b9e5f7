"""What ran when: the work of the devices and of the host's threads, as columns of events.

On a run without accelerator the device is the CPU, and its work the TensorFlow operations of the
training function; the operations of tf.data's functions run on the same threads pools and are told
apart by the executor that ran them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.xla_programs import CONTAINERS, XlaPrograms
from tfdoctor.facts.timeline.trainer import trainer_waits
from tfdoctor.facts.timeline.xla_cpu_work import DEPTHWISE, compiled_work
from tfdoctor.kinds import DeviceKind
from tfdoctor.trace import EventType, Intervals, Line, Trace
from tfdoctor.trace.model import Value
from tfdoctor.trace.names import (
    ASSIGN,
    CAPTURED_FUNCTION,
    COLLECTIVE,
    COLLECTIVE_OPERATION,
    COPY,
    EAGER_OPERATION,
    EXECUTOR,
    GRADIENT,
    INPUT_THREAD,
    TPU_COLLECTIVES,
    TPU_INFEEDS,
    TPU_TRANSFERS,
    UPDATE,
    WAIT,
    XLA_ON_CPU,
)
from tfdoctor.verdict import Stage

UNNAMED = "compiled or unnamed"
"""The type given to work whose operation the trace does not name."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The n events of one stage's work on one device.

    ``label`` indexes ``labels``, which are ("operation name", "operation type", "what ran") triples.
    """

    labels: tuple[tuple[str, str, str], ...]
    label: NDArray[np.int32]  # (n,)
    start_ps: NDArray[np.int64]  # (n,)
    end_ps: NDArray[np.int64]  # (n,)
    types: tuple[EventType, ...] = ()  # of each label

    def spans(self) -> Intervals:
        """Return when any of the events ran."""
        return Intervals.union(zip(self.start_ps.tolist(), self.end_ps.tolist(), strict=True))

    def only(self, mask: NDArray[np.bool_]) -> Self:
        """Return the events that the (n,) ``mask`` selects."""
        return replace(
            self, label=self.label[mask], start_ps=self.start_ps[mask], end_ps=self.end_ps[mask]
        )

    def attributed_ps(self) -> NDArray[np.float64]:
        """Return (n,) ps: events that overlap share the time equally, so the sum is that of the union."""
        n = len(self.label)
        times = np.concatenate((self.start_ps, self.end_ps))
        order = np.argsort(times, kind="stable")
        change = np.concatenate((np.ones(n), -np.ones(n)))[order]
        active = np.cumsum(change)[:-1]
        lengths = np.diff(times[order])
        share = np.where(active > 0, lengths / np.maximum(active, 1), 0.0)
        passed = np.empty(2 * n)
        passed[order] = np.concatenate(([0.0], np.cumsum(share)))
        return passed[n:] - passed[:n]


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
        cls, trace: Trace, device: Device, framework: Framework, xla_programs: XlaPrograms
    ) -> Self:
        """Sort all events of the host and of the busiest device."""
        wait = trainer_waits(trace.host_lines)
        if framework.foreign and device.kind == DeviceKind.CPU:
            return cls(
                wait, {Stage.DEVICE: _tabulate(compiled_work(trace, xla_programs))}, Intervals()
            )
        captured = _captured_functions(trace)
        training = _training(trace, captured)
        computing = _host_operations(trace, captured - training, training)
        if device.kind == DeviceKind.CPU:
            stages = _by_stage(computing)
            return cls(wait, stages, Intervals(), within_data=bool(training))
        stages = _sort_device(device, xla_programs) if device.busiest else {}
        return cls(wait, stages, computing.spans(), device.missing, bool(training))

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


def select(line: Line, mask: NDArray[np.bool_]) -> Line:
    """Return a line with the selected events, without their stats."""
    return Line(
        line.name, line.id, line.types, line.kind[mask], line.start_ps[mask], line.duration_ps[mask]
    )


def _host_operations(trace: Trace, foreign: set[int], training: set[int]) -> Work:
    """Gather the training function's operations, without tf.data's and without those that contain others."""
    if trace.host is None:
        return _work([], ())
    types = trace.host.types
    is_operation = np.array([bool(operation_label(kind)) for kind in types], dtype=bool)
    lines = [
        select(line, is_operation[line.kind] & _ours(line, foreign, training))
        for line in trace.host.lines
        if len(line) and (training or not line.name.startswith(INPUT_THREAD))
    ]
    return _work([select(line, leaves(line)) for line in lines], types)


def _ours(line: Line, foreign: set[int], training: set[int]) -> NDArray[np.bool_]:
    """Return (n,) whether an event belongs to the training: few on tf.data's own threads do."""
    runs = _executions(line)
    if line.name.startswith(INPUT_THREAD):
        return np.isin(runs, np.array(sorted(training), np.uint64))
    return ~np.isin(runs, np.array(sorted(foreign), np.uint64))


def _training(trace: Trace, captured: set[int]) -> set[int]:
    """Return the executions of tf.data that take gradients and change weights."""
    if not captured or trace.host is None:
        return set()
    kinds = trace.host.types
    gradients = np.array([bool(GRADIENT.search(kind.name)) for kind in kinds], dtype=bool)
    changes = np.array([_changes(kind) for kind in kinds], dtype=bool)
    executions = [
        {int(run) for line in trace.host.lines for run in np.unique(_executions(line, wanted))}
        for wanted in (gradients, changes)
    ]
    return captured & executions[0] & executions[1]


def _changes(kind: EventType) -> bool:
    """Say whether an operation changes weights."""
    ending = kind.name.rpartition(":")[2]
    return bool(UPDATE.fullmatch(ending) or ASSIGN.fullmatch(ending))


def operation_label(kind: EventType) -> tuple[str, str, str] | None:
    """Return (name, type, what ran) of an operation's event, or None for any other event."""
    if XLA_ON_CPU.fullmatch(kind.name):
        return "", UNNAMED, kind.name
    if eager := EAGER_OPERATION.fullmatch(kind.name):
        return eager[1], eager[1], kind.name
    name, colon, ending = kind.name.rpartition(":")
    if not colon or not name or name.endswith(":") or ending != kind.display_name:
        return None
    if WAIT.fullmatch(kind.name) or ending.startswith(("IteratorGetNext", "_Arg", "_Ret")):
        return None
    return name, ending, kind.name


def leaves(line: Line) -> NDArray[np.bool_]:
    """Return (n,) whether an event contains no other event of its line."""
    if not len(line):
        return np.zeros(0, dtype=bool)
    ends = line.start_ps + line.duration_ps
    following = np.append(line.start_ps[1:], np.iinfo(np.int64).max)
    return ends <= following


def _captured_functions(trace: Trace) -> set[int]:
    """Return the ids of the executions that tf.data started."""
    return {
        int(stats["id"])
        for line in (trace.host.lines if trace.host else ())
        for index, stats in line.stats.items()
        if "id" in stats and line.types[line.kind[index]].name.startswith(CAPTURED_FUNCTION)
    }


def executors(
    line: Line, name: str = EXECUTOR
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
    """Return the start, end and execution id of every stretch of an executor on this thread."""
    kinds = [i for i, kind in enumerate(line.types) if kind.name == name]
    indices = np.flatnonzero(np.isin(line.kind, kinds))
    starts = line.start_ps[indices]
    ids = [int(line.stats.get(int(i), {}).get("id", 0)) for i in indices]
    return starts, starts + line.duration_ps[indices], ids


def _executions(line: Line, wanted: NDArray[np.bool_] | None = None) -> NDArray[np.uint64]:
    """Return (n,) the id of the execution that an event lies in, 0 for none.

    ``wanted``, (number of kinds,), picks events by kind; (n,) is then their number.
    """
    starts, ends, ids = executors(line)
    times = line.start_ps if wanted is None else line.start_ps[wanted[line.kind]]
    if not len(starts):
        return np.zeros(len(times), np.uint64)
    latest = np.searchsorted(starts, times, side="right") - 1
    inside = (latest >= 0) & (times < ends[latest])
    executions: NDArray[np.uint64] = np.where(
        inside, np.array(ids, np.uint64)[latest], np.uint64(0)
    )
    return executions


def _work(lines: list[Line], types: tuple[EventType, ...]) -> Work:
    label = np.concatenate([line.kind for line in lines]) if lines else np.zeros(0, np.int32)
    start = np.concatenate([line.start_ps for line in lines]) if lines else np.zeros(0, np.int64)
    length = (
        np.concatenate([line.duration_ps for line in lines]) if lines else np.zeros(0, np.int64)
    )
    labels = tuple(operation_label(kind) or ("", "", kind.name) for kind in types)
    return Work(labels, label, start, start + length, types)


def _sort_device(device: Device, xla_programs: XlaPrograms) -> dict[Stage, Work]:
    stages: dict[Stage, list[tuple[tuple[str, str, str], EventType, int, int]]] = {}
    for line in work_lines(device.busiest) if device.busiest else ():
        for event in line.events():
            if event.type.stats.get("hlo_category") in CONTAINERS:
                continue
            stage = _stage(device.kind, event.type)
            label = _device_label(event.type, event.stats)
            if xla_programs.is_depthwise(
                str(event.type.stats.get("program_id")), event.type.display_name
            ):
                label = (label[0], DEPTHWISE, label[2])
            row = (label, event.type, event.start_ps, event.end_ps)
            stages.setdefault(stage, []).append(row)
    return {stage: _tabulate(rows) for stage, rows in stages.items()}


def _stage(device: DeviceKind, kind: EventType) -> Stage:
    if device == DeviceKind.GPU:
        if COPY.match(kind.name):
            return Stage.TRANSFER
        return Stage.COLLECTIVE if COLLECTIVE.match(kind.name) else Stage.DEVICE
    category = str(kind.stats.get("hlo_category", ""))
    if category in TPU_INFEEDS:
        return Stage.INPUT
    if category in TPU_TRANSFERS:
        return Stage.TRANSFER
    return Stage.COLLECTIVE if category.startswith(TPU_COLLECTIVES) else Stage.DEVICE


def _device_label(kind: EventType, stats: Mapping[str, Value]) -> tuple[str, str, str]:
    """Return (operation, type, kernel); TensorFlow 2.3 and 2.4 store the operation as "annotation"."""
    for key in ("tf_op", "annotation", "level 0"):
        text = str(stats.get(key) or kind.stats.get(key) or "")
        if ":" in text:
            name, _, ending = text.rpartition(":")
            return name, ending.split("#")[0], kind.name
    return "", "", kind.name


def _tabulate(rows: list[tuple[tuple[str, str, str], EventType, int, int]]) -> Work:
    table: dict[tuple[str, str, str], int] = {}
    types: list[EventType] = []
    for label, kind, _, _ in rows:
        if label not in table:
            table[label] = len(table)
            types.append(kind)
    return Work(
        tuple(table),
        np.array([table[row[0]] for row in rows], np.int32),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64),
        tuple(types),
    )
