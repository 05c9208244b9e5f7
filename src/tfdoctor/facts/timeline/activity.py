"""What ran when: the work of the devices and of the host's threads, as columns of events.

On a run without accelerator the device is the CPU, and its work the TensorFlow operations of the
training function; the operations of tf.data's functions run on the same thread pools and are
distinguished by the executor that ran them.
"""

from functools import cache
from itertools import cycle, repeat

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import CONTAINERS, XlaPrograms, entry
from tfdoctor.facts.timeline.host_events import (
    executions_of,
    is_captured,
    is_named,
    leaves,
    operation_label,
    select,
    trainer_waits,
)  # fmt: skip
from tfdoctor.trace.hlo import PROGRAM, HloProgram, Instruction
from tfdoctor.trace.names import (
    ASSIGN,
    COLLECTIVE,
    COLLECTIVE_OPERATION,
    COPY,
    GRADIENT,
    INPUT_THREAD,
    TPU_COLLECTIVES,
    TPU_INFEEDS,
    TPU_TRANSFERS,
    UPDATE,
)  # fmt: skip
from tfdoctor.trace.stats import Value  # noqa: TC001 - beside its siblings

STATS = ("tf_op", "annotation", "level 0")  # Where an event names its operation, by TensorFlow's version
# TensorFlow's name for a convolution of each channel alone; facts use it for JAX's too.
DEPTHWISE = "DepthwiseConv2dNative"
# Characters of instructions' names that XLA replaces by "_" in kernels' names.
SANITIZED = re.compile(r"[^A-Za-z0-9_]")


class Work(Record, eq=False):
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
        active = np.cumsum(np.where(order < n, np.int8(1), np.int8(-1)), dtype=np.int32)[:-1]
        share = np.diff(times[order]) / np.maximum(active, 1)
        share[active <= 0] = 0.0
        passed = np.zeros(2 * n)
        passed[order[1:]] = np.cumsum(share, out=share)
        return passed[n:] - passed[:n]


def tabulate(rows: list[tuple[tuple[str, str, str], EventType, int, int]]) -> Work:
    """Convert rows of (label, type, start, end) to columns."""
    types: dict[tuple[str, str, str], EventType] = {}
    for label, kind, _, _ in rows:
        types.setdefault(label, kind)
    at = {label: place for place, label in enumerate(types)}
    columns = np.array([(at[label], start, end) for label, _, start, end in rows], np.int64).reshape(-1, 3).T
    places, starts_ps, ends_ps = map(np.ascontiguousarray, columns)
    return Work(tuple(types), places.astype(np.int32), starts_ps, ends_ps, tuple(types.values()))


def compiled_work(trace: Trace, xla_programs: XlaPrograms) -> Work:
    """Return every operation of JAX's programs that ran on the host's threads, without those that contain others.

    Each event has the name of an HLO instruction and of its program (jaxlib 0.4 to 0.10); what the instruction
    computes is in the program. TensorFlow's compiled functions are recorded only in part.
    """

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
    # Of a fusion it is the name of its first matmul.
    title = next((inner.op_name for inner in matmuls if inner.op_name), instruction.op_name)
    stats: dict[str, Value] = {"tf_op": title}
    if matmuls:  # two FLOPs for each multiplication
        flops = sum(2 * m.batch * m.m * m.n * m.k * m.window for inner in matmuls if (m := inner.matmul))
        stats |= {"hlo_category": "convolution fusion", "flops": flops}
    if matmuls and all(inner.matmul and inner.matmul.depthwise for inner in matmuls):
        return EventType(name, DEPTHWISE, stats)
    return EventType(name, title.rpartition("/")[2] or instruction.opcode, stats)


def kernel_operations(
    kernels: Iterable[Event], programs: XlaPrograms, operations: XlaOperations
) -> list[Operation | None]:
    """Return which operation of XLA's programs each kernel of a GPU computes; None where that is unknown.

    A kernel names its program and, outside of CUDA graphs, its instruction (stats ``program_id`` and ``hlo_op``).
    In a CUDA graph ``hlo_op`` names the graph, ``command_buffer_1``. There, a kernel that XLA generated has the
    name of its fusion ("loop_fusion_7" of "loop_fusion.7"; equal fusions share the kernel of the first), and
    kernels of cuBLAS and cuDNN follow the order of the program's calls, which is relied on only where each call
    ran one kernel, and the same one every time. Seen with JAX 0.11 on an H100.
    """
    known = operations.operations
    by_kernel = {(program, SANITIZED.sub("_", name)): operation for (program, name), operation in known.items()}
    found: list[Operation | None] = []
    unnamed: dict[str, list[tuple[int, int, str]]] = defaultdict(list)  # kernels of libraries, by program
    for place, event in enumerate(kernels):
        module, instruction = str(event.stats.get("program_id", "")), str(event.stats.get("hlo_op", ""))
        found.append(known.get((module, instruction)) or by_kernel.get((module, event.name)))
        if not found[-1] and module and known and not COPY.match(event.name):
            unnamed[module].append((event.start_ps, place, event.name))
    for title, program in programs.programs.items():
        fingerprint = PROGRAM.search(title)
        of_library = sorted(unnamed.get(fingerprint[1], ())) if fingerprint else []
        matmuls = {one.name for one in program.computations.get(program.entry, ()) if one.matmul and one.target}
        calls = [name for name in program.schedule.get(program.entry, ()) if name in matmuls]
        names = [name for _, _, name in of_library]
        if fingerprint and calls and names == names[: len(calls)] * (len(names) // len(calls)):
            for (_, place, _), call in zip(of_library, cycle(calls), strict=False):
                found[place] = known[fingerprint[1], call]
    return found


def work_by_stage(device: Device, xla_programs: XlaPrograms, xla_operations: XlaOperations) -> dict[Stage, Work]:
    """Sort the events of the busiest GPU or TPU by stage."""
    stages: dict[Stage, list[tuple[tuple[str, str, str], EventType, int, int]]] = defaultdict(list)
    lines = work_lines(device.busiest) if device.busiest else ()
    kernels: Iterable[Operation | None] = repeat(None)
    if device.kind == DeviceKind.GPU:
        kernels = kernel_operations((one for line in lines for one in line.events()), xla_programs, xla_operations)
    for event, operation in zip((one for line in lines for one in line.events()), kernels, strict=False):
        kind = event.type
        if kind.stats.get("hlo_category") in CONTAINERS:
            continue
        # TensorFlow 2.3 and 2.4 store the operation as "annotation".
        texts = (str(event.stats.get(key) or kind.stats.get(key) or "") for key in STATS)
        name, _, does = next((text for text in texts if ":" in text), "").rpartition(":")
        does = does.split("#")[0]
        if xla_programs.is_depthwise(str(kind.stats.get("program_id")), kind.display_name):
            does = DEPTHWISE
        if operation:
            name, does = operation.name, operation.type
        row = ((name, does, kind.name), kind, event.start_ps, event.end_ps)
        category, stage = str(kind.stats.get("hlo_category", "")), Stage.DEVICE
        on_gpu = device.kind == DeviceKind.GPU
        if not on_gpu and category in TPU_INFEEDS:
            stage = Stage.INPUT
        elif COPY.match(kind.name) if on_gpu else category in TPU_TRANSFERS:
            stage = Stage.TRANSFER
        elif COLLECTIVE.match(kind.name) if on_gpu else category.startswith(TPU_COLLECTIVES):
            stage = Stage.COLLECTIVE
        stages[stage].append(row)
    return {stage: tabulate(rows) for stage, rows in stages.items()}


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
    _spans: dict[Stage, Intervals] = field(default_factory=dict)  # what was asked for before

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
        if stage not in self._spans:
            self._spans[stage] = self.stages[stage].spans() if stage in self.stages else Intervals()
        return self._spans[stage]
