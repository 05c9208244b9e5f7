"""The events of a GPU or TPU by stage."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import CONTAINERS, XlaPrograms, entry
from tfdoctor.facts.timeline.host_events import leaves, select
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Event, EventType, Intervals, Trace
from tfdoctor.trace.hlo import PROGRAM, HloProgram, Instruction
from tfdoctor.trace.hlo_matmul import HloMatmul
from tfdoctor.trace.names import COLLECTIVE, COPY, TPU_COLLECTIVES, TPU_INFEEDS, TPU_TRANSFERS
from tfdoctor.trace.stats import Value  # noqa: TC001 - beside its siblings


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
        return Intervals.merged(self.start_ps, self.end_ps)

    def only(self, mask: NDArray[np.bool_]) -> Self:
        """Return the events that the (n,) ``mask`` selects."""
        return replace(self, label=self.label[mask], start_ps=self.start_ps[mask], end_ps=self.end_ps[mask])

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


def tabulate(rows: list[tuple[tuple[str, str, str], EventType, int, int]]) -> Work:
    """Convert rows of (label, type, start, end) to columns."""
    types: dict[tuple[str, str, str], EventType] = {}
    for label, kind, _, _ in rows:
        types.setdefault(label, kind)
    at = {label: place for place, label in enumerate(types)}
    return Work(
        tuple(types),
        np.array([at[row[0]] for row in rows], np.int32),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64),
        tuple(types.values()),
    )


# TensorFlow's name for a convolution of each channel alone; facts use it for JAX's too.
DEPTHWISE = "DepthwiseConv2dNative"


def compiled_work(trace: Trace, xla_programs: XlaPrograms) -> Work:
    """Return every operation that ran on the host's threads, without those that contain others."""

    @cache
    def instructions(program: str) -> dict[str, tuple[HloProgram, Instruction]]:
        hlo = xla_programs.named(program)
        return {name: (hlo, instruction) for name, instruction in entry(hlo).items()} if hlo else {}

    rows = []
    for line in trace.host.lines if trace.host else ():
        chosen = line.stats.having("hlo_op")
        for index in chosen[leaves(select(line, chosen))].tolist():
            stats, name = line.stats.of(index), line.types[line.kind[index]].name
            program = f"{stats.get('hlo_module')!s}({stats.get('program_id')!s})"
            kind = _kind(name, *instructions(program).get(name, (None, None)))
            start = int(line.start_ps[index])
            label = (str(kind.stats.get("tf_op", "")), kind.display_name, name)
            rows.append((label, kind, start, start + int(line.duration_ps[index])))
    return tabulate(rows)


def _kind(name: str, program: HloProgram | None, instruction: Instruction | None) -> EventType:
    """Describe an instruction as a TPU's profiler would: category, FLOPs, the framework's name."""
    if program is None or instruction is None:
        return EventType(name)
    matmuls = [inner for inner in program.inside(instruction) if inner.matmul]
    flops = sum(flops_of(inner.matmul) for inner in matmuls if inner.matmul)
    # Of a fusion it is the name of its first matmul.
    title = next((inner.op_name for inner in matmuls if inner.op_name), instruction.op_name)
    stats: dict[str, Value] = {"tf_op": title}
    if matmuls:
        stats |= {"hlo_category": "convolution fusion", "flops": flops}
    if matmuls and all(inner.matmul and inner.matmul.depthwise for inner in matmuls):
        return EventType(name, DEPTHWISE, stats)
    return EventType(name, title.rpartition("/")[2] or instruction.opcode, stats)


def flops_of(matmul: HloMatmul) -> int:
    """Return the FLOPs of a matmul: two for each multiplication."""
    return 2 * matmul.batch * matmul.m * matmul.n * matmul.k * matmul.window


# Characters of instructions' names that XLA replaces by "_" in kernels' names.
SANITIZED = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class CompiledKernels:
    """Finds the operation of a kernel: by its program and instruction, by its name, or by its place in time."""

    operations: Mapping[tuple[str, str], Operation] = field(default_factory=dict)
    by_kernel: Mapping[tuple[str, str], Operation] = field(default_factory=dict)
    by_start: Mapping[tuple[str, int], Operation] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event], programs: XlaPrograms, operations: XlaOperations) -> Self:
        """Match the kernels of one GPU with the programs."""
        known = operations.operations
        if not known:
            return cls()
        by_kernel = {(program, SANITIZED.sub("_", name)): operation for (program, name), operation in known.items()}
        matched = cls(known, by_kernel)
        unnamed: dict[str, list[Event]] = defaultdict(list)  # kernels of libraries, by program
        for event in events:
            if "program_id" in event.stats and not COPY.match(event.name) and not matched.find(event):
                unnamed[str(event.stats["program_id"])].append(event)
        placed: dict[tuple[str, int], Operation] = {}
        for module, program in programs.programs.items():
            fingerprint = PROGRAM.search(module)
            if fingerprint and (kernels := unnamed.get(fingerprint[1])):
                kernels.sort(key=lambda event: event.start_ps)
                order = _in_order([event.name for event in kernels], program)
                names = [(fingerprint[1], name) for name in order]
                placed |= {(one[0], event.start_ps): known[one] for one, event in zip(names, kernels, strict=False)}
        return cls(known, by_kernel, placed)

    def find(self, event: Event) -> Operation | None:
        """Return the operation that a kernel computes; None where that is unknown."""
        program, instruction = str(event.stats.get("program_id", "")), str(event.stats.get("hlo_op", ""))
        return (
            self.operations.get((program, instruction))
            or self.by_kernel.get((program, event.name))
            or self.by_start.get((program, event.start_ps))
        )


def _in_order(kernels: list[str], program: HloProgram) -> list[str]:
    """Return the library call that each of a program's library kernels ran; [] where the order is not certain."""
    entry = program.computations.get(program.entry, ())
    of_library = {instruction.name for instruction in entry if instruction.matmul and instruction.target}
    calls = [name for name in program.schedule.get(program.entry, ()) if name in of_library]
    times = len(kernels) // len(calls) if calls else 0
    return calls * times if kernels == kernels[: len(calls)] * times else []


STATS = ("tf_op", "annotation", "level 0")  # Where an event names its operation, by TensorFlow's version


def work_by_stage(device: Device, xla_programs: XlaPrograms, xla_operations: XlaOperations) -> dict[Stage, Work]:
    """Sort the events of the busiest GPU or TPU by stage."""
    stages: dict[Stage, list[tuple[tuple[str, str, str], EventType, int, int]]] = {}
    lines = work_lines(device.busiest) if device.busiest else ()
    kernels = CompiledKernels()
    if device.kind == DeviceKind.GPU:
        events = (event for line in lines for event in line.events())
        kernels = CompiledKernels.of(events, xla_programs, xla_operations)
    for event in (event for line in lines for event in line.events()):
        kind = event.type
        if kind.stats.get("hlo_category") in CONTAINERS:
            continue
        # TensorFlow 2.3 and 2.4 store the operation as "annotation".
        texts = (str(event.stats.get(key) or kind.stats.get(key) or "") for key in STATS)
        name, _, does = next((text for text in texts if ":" in text), "").rpartition(":")
        does = does.split("#")[0]
        if xla_programs.is_depthwise(str(kind.stats.get("program_id")), kind.display_name):
            does = DEPTHWISE
        if operation := kernels.find(event):
            name, does = operation.name, operation.type
        row = ((name, does, kind.name), kind, event.start_ps, event.end_ps)
        stages.setdefault(_stage(device.kind, kind), []).append(row)
    return {stage: tabulate(rows) for stage, rows in stages.items()}


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
