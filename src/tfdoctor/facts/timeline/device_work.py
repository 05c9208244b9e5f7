"""The work of a device, as columns: the events of a GPU or TPU by stage, and of XLA's programs on the CPU."""

from functools import cache
from itertools import cycle, repeat

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import CONTAINERS, XlaPrograms, entry
from tfdoctor.facts.timeline.host_events import leaves, select
from tfdoctor.trace.hlo import PROGRAM, HloProgram, Instruction
from tfdoctor.trace.names import COLLECTIVE, COPY, TPU_COLLECTIVES, TPU_INFEEDS, TPU_TRANSFERS
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
