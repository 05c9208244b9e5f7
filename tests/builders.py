"""Traces and recordings in a few literals.

Times are milliseconds. An event is ``(name, start, end)``, with its stats as a fourth part::

    trace(host=[line("python", ("train", 0, 100, {"_r": 1, "step_num": 0}))])

An operation is named as TensorFlow names it, "model/conv/Conv2D:Conv2D"; its type follows from that.
"""

from dataclasses import field

from tests.kit import *
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import StageTime
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.facts.steps.step import steps_between
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import HostMachine, Manifest
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.samples import MachineSample
from tfdoctor.recording.typed import read
from tfdoctor.trace.model import EventType, Line, Plane, Trace, TypeTable
from tfdoctor.trace.stats import REAL, SIGNED, TEXT, UNSIGNED, EventStats, Value

PS = 1_000_000_000
"""Picoseconds of a millisecond."""

Stats = Mapping[str, Any]
Row = tuple[str, float, float] | tuple[str, float, float, Stats]


@dataclass(frozen=True)
class Thread:
    """A line that does not know its plane's event types yet."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Machine:
    """A device's lines, its own stats, and the stats of event types by name."""

    threads: tuple[Thread, ...]
    stats: Stats = field(default_factory=dict)
    kinds: Mapping[str, Stats] = field(default_factory=dict)


def line(name: str, *rows: Row) -> Thread:
    return Thread(name, rows)


def device(*threads: Thread, kinds: Mapping[str, Stats] | None = None, **stats: Any) -> Machine:
    return Machine(threads, stats, kinds or {})


def v100(*threads: Thread) -> Machine:
    return device(
        *threads,
        device_vendor="Nvidia",
        gpu_device_name="Tesla V100-SXM2-16GB",
        compute_cap_major=7,
        compute_cap_minor=0,
        clock_rate=1_530_000,
        core_count=80,
        memory_bandwidth=900_096_000_000,
    )


def trace(
    host: Iterable[Thread] | None = (),
    gpus: Iterable[Machine] = (),
    tpus: Iterable[Machine] = (),
    errors: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Trace:
    planes = [] if host is None else [_plane("/host:CPU", Machine(tuple(host)))]
    planes += [_plane(f"/device:GPU:{n}", gpu) for n, gpu in enumerate(gpus)]
    planes += [_plane(f"/device:TPU:{n}", tpu) for n, tpu in enumerate(tpus)]
    return Trace(tuple(planes), ("vm",), errors, warnings)


def _plane(name: str, machine: Machine) -> Plane:
    names = dict.fromkeys(row[0] for thread in machine.threads for row in thread.rows)
    types = TypeTable(EventType(n, _display(n), machine.kinds.get(n, {})) for n in names)
    kinds = {n: at for at, n in enumerate(names)}
    lines = tuple(_line(n, thread, types, kinds) for n, thread in enumerate(machine.threads))
    return Plane(name, 0, lines, types, machine.stats)


def _display(name: str) -> str:
    operation = re.search(r"[^:]:(\w+)$", name)
    return operation[1] if operation else ""


def _line(number: int, thread: Thread, types: TypeTable, kinds: Mapping[str, int]) -> Line:
    rows = sorted(thread.rows, key=lambda row: (row[1], -row[2]))
    return Line(
        thread.name,
        number,
        types,
        np.array([kinds[row[0]] for row in rows], np.int32),
        np.array([round(row[1] * PS) for row in rows], np.int64),
        np.array([round(row[2] * PS) - round(row[1] * PS) for row in rows], np.int64),
        _event_stats({at: row[3] for at, row in enumerate(rows) if len(row) == 4}),
    )


def _event_stats(stats_of: Mapping[int, Mapping[str, Value]]) -> EventStats:
    rows = [(at, *stat) for at, stats in sorted(stats_of.items()) for stat in stats.items()]
    names, texts = tuple(dict.fromkeys(name for _, name, _ in rows)), dict[str | bytes, int]()
    values = [_bits(value, texts) for _, _, value in rows]
    return EventStats(
        names,
        np.array([at for at, _, _ in rows], np.int64),
        np.array([names.index(name) for _, name, _ in rows], np.int64),
        np.array([form for form, _ in values], np.int8),
        np.array([bits for _, bits in values], np.uint64),
        tuple(texts),
    )


def _bits(value: Value, texts: dict[str | bytes, int]) -> tuple[int, int]:
    """Return how a value is stored, and as which 64 bits."""
    if isinstance(value, float):
        return REAL, int(np.float64(value).view(np.uint64))
    if isinstance(value, int):
        return (SIGNED if value < 0 else UNSIGNED), value % 2**64
    return TEXT, texts.setdefault(value, len(texts))


def only_line(*rows: Row) -> Line:
    """A line by itself."""
    return _plane("/host:CPU", Machine((line("", *rows),))).lines[0]


def marker(number: int, start: float, end: float, **stats: Any) -> Row:
    """What tfdoctor, and TensorBoard's callback, put around a training step."""
    return ("train", start, end, {"_r": 1, "step_num": number, **stats})


def markers(count: int, step: float, call: float | None = None) -> Thread:
    """Steps that follow each other, and the end of the traced window."""
    inside = step if call is None else call
    rows = [marker(n, n * step, n * step + inside) for n in range(count)]
    return line("python", *rows, ("tfdoctor_end", count * step, count * step))


def executor(start: float, end: float, number: int = 1) -> Row:
    return ("ExecutorState::Process", start, end, {"id": number})


def iterator(path: str, start: float, end: float, number: int, parent: int = 0, **stats: Any) -> Row:
    ids = {"id": number} | ({"parent_id": parent} if parent else {})
    return (f"Iterator::{path}", start, end, ids | stats)


def wait(start: float, end: float) -> Row:
    return ("IteratorGetNextOp::DoCompute", start, end)


def captured(start: float, end: float, number: int) -> Row:
    return ("InstantiatedCapturedFunction::Run", start, end, {"id": number})


def manifest(**parts: Any) -> Manifest:
    host = HostMachine("vm", "AMD EPYC", ("avx2", "avx512f", "avx512_bf16"), 4, 4.0, 2**34)
    return Manifest(**{"finished": True, "host": host, "cwd": "/home/me", **parts})


def recording(
    program: Stats | None = None, samples: Iterable[Stats] = (), *, manifest: Manifest | None = None
) -> Recording:
    built = read(ProgramRecord, program, []) if program else None
    seen = tuple(read(MachineSample, sample, []) for sample in samples)
    return Recording(None, manifest, (), built, seen, ())


def chart(of: Trace, beside: Recording | None = None) -> Chart:
    return Chart([of, beside or recording()])


def graph_operation(name: str, kind: str, inputs: Any = (), outputs: Any = (), **more: Any) -> dict[str, Any]:
    """An operation as the program record has it."""
    return {"name": name, "type": kind, "inputs": inputs, "outputs": outputs, **more}


def program_of(*operations: Mapping[str, Any], **record: Any) -> Program:
    """The program that the record of a function with these operations describes."""
    graphs = [{"kind": "function", "operations": list(operations)}]
    return chart(trace([]), recording({"graphs": graphs, **record})).fact(Program)


def all_ran(program: Program, ms: float, *leave_out: str) -> tuple[OperationTime, ...]:
    """Every operation of a program, except for some types, each for so many ms."""
    return tuple(
        OperationTime(name=it.name, type=it.type, ms=ms, at=it.at, operation=it)
        for it in program.operations
        if it.type not in leave_out
    )


def matmul(
    kind: str = "Conv2D",
    ms: float = 10.0,
    *,
    dtype: str = "float32",
    weights: tuple[int | None, ...] = (3, 3, 32, 32),
    ran: str = "",
    **more: Any,
) -> OperationTime:
    """A convolution or matmul that ran."""
    name = more.pop("name", f"model/{more.get('layer', 'layer')}/{kind}")
    tensors = ((dtype, (32, 32, 32, 32)), (dtype, weights))
    graph = Operation(name=name, type=kind, inputs=tensors) if dtype else None
    return OperationTime(
        name=name, type=kind, ms=ms, ran=(ran or f"{name}:_MklNative{kind}",), operation=graph, **more
    )


def even_steps(number: int, each_ms: float) -> Steps:
    """Return evenly long steps."""
    edges = np.arange(number + 1) * round(each_ms * PS)
    return Steps.of(steps_between(edges[:-1], edges[1:]))


# The beginnings of the names of stages that work on threads of their own.
WORK_AHEAD = ("Prefetch", "Parallel", "MapAndBatch")


def stage_time(path: str, work_ms: float = 0.0, threads: float = 1.0, **more: Any) -> StageTime:
    """Return a stage that does its work on threads; its kind ends its path."""
    kind = path.rpartition("::")[2]
    parts: dict[str, Any] = {"path": path, "kind": kind, "work_ms": work_ms}
    parts |= {"wall_ms": work_ms / threads, "asynchronous": kind.startswith(WORK_AHEAD)}
    return StageTime(**(parts | more))
