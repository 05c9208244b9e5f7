"""Where the time of a TPU's cores goes, per training step, or per run of the program with the most time.

Each instant of a round belongs to one part, the first of the list that is at work, so the parts sum to the round. A
round lasts from its start to the next one's. XLA starts asynchronous work with one operation (copy-start,
all-gather-start, send) and waits for it with another (copy-done): between them it is hidden, the wait is exposed.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.xla_programs import CONTAINERS, XlaPrograms, module_runs
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.steps.steps import RoundUnit
from tfdoctor.facts.steps.xla_steps import compiled_steps, of_modules
from tfdoctor.facts.timeline.host_events import is_named, leaves, spans_of
from tfdoctor.facts.tpu.shapes import arrays
from tfdoctor.trace.hlo import HOST_SPACE
from tfdoctor.trace.names import TPU_COLLECTIVES, TPU_OPS

STEP_LINE = "Steps"  # The line of steps that TensorFlow and PyTorch/XLA write on a TPU; JAX does not
BARRIER = "barrier-cores"  # The event of a core that waits for the others, on the line "XLA TraceMe" (v6e, 2025)
ENQUEUE = "DoEnqueueProgram"  # The host hands a program to a core's queue (libtpu, v3 to v6e)
DONE = re.compile(r"-done(?:(?!-done)[\w.-])*\(")  # The end of asynchronous work in HLO text, before its operands
OPERAND = re.compile(r"%([\w.-]+)\)")  # The last one began that work


class TpuPart(StrEnum):
    """A part of a round, by priority; HOST is send and receive, COPIES the waits for asynchronous copies."""

    COMPUTE = "compute"
    COLLECTIVE = "collectives"
    HOST = "host transfers"
    COPIES = "waits for copies"
    INFEED = "infeed"
    OUTFEED = "outfeed"
    IDLE = "idle"


COMPUTE, COLLECTIVE, HOST, COPIES, INFEED, OUTFEED, IDLE = PARTS = tuple(TpuPart)


class CopyPlace(StrEnum):
    """Where a copy goes."""

    HOST = "host"  # over PCIe, to or from the host
    CHIP = "chip"  # within the chip's memories
    PEERS = "cores"  # between cores


class Copy(Record):
    """One pair of operations that start and end a copy. Milliseconds and bytes per round."""

    name: str  # "copy-done.5"
    category: str  # XLA's: "copy-done", "all-gather-done"
    where: CopyPlace
    nbytes: float
    exposed_ms: float  # in which the core waited for it
    calls: float


class TpuCore(Record):
    """One core. Milliseconds per round; ``parts`` sum to ``round_ms``."""

    name: str  # "/device:TPU:0"
    rounds: int
    round_ms: float
    parts: Mapping[TpuPart, float]
    copies: tuple[Copy, ...]
    hidden_ms: float  # copies under way while the core computed
    barriers_ms: tuple[float, ...]  # each wait for the other cores, in order; of the whole trace

    @classmethod
    def of(cls, core: Plane, unit: RoundUnit, program: str) -> Self | None:
        """Divide a core's rounds; None where it has none."""
        lines = {line.name: line for line in core.lines}
        operations, barriers = lines.get(TPU_OPS), lines.get("XLA TraceMe")
        starts, end = starts_of(core, unit, program)
        if operations is None or not len(operations) or not len(starts) or end <= starts[0]:
            return None
        inside = (operations.start_ps >= starts[0]) & (operations.start_ps < end)
        scale, begin = PS_PER_MS * len(starts), int(starts[0])
        kinds = np.array([PARTS.index(part_of(category_of(kind))) for kind in operations.types])
        mask = inside & counted(operations)
        ran = {
            part: spans_of(operations, mask & (kinds[operations.kind] == at)) for at, part in enumerate(PARTS[:-1])
        }
        layers = exclusive({part: spans.within(begin, end) for part, spans in ran.items()})
        pairs, under_way = copies(operations, inside, len(starts))
        parts = {part: layer.total / scale for part, layer in layers.items()}
        total = (end - begin) / scale
        waits = barriers.duration_ps[is_named(barriers, BARRIER.__eq__)] / PS_PER_MS if barriers else ()
        hidden = (under_way & layers[COMPUTE]).total / scale
        parts |= {IDLE: total - sum(parts.values())}
        return cls(core.name, len(starts), total, parts, pairs, hidden, tuple(map(float, waits)))

    @property
    def busy_ms(self) -> float:
        """The time in which any operation ran, waits for copies included."""
        return self.round_ms - self.parts[IDLE]

    def share(self, part: TpuPart) -> float:
        """Return a part's share of the time in operations."""
        return self.parts[part] / self.busy_ms if self.busy_ms else 0.0

    @property
    def exposed_ms(self) -> float:
        """The waits for copies and other asynchronous work."""
        return sum(copy.exposed_ms for copy in self.copies)

    @property
    def host_bytes(self) -> float:
        """The bytes that asynchronous copies move between the host's memory and the device's."""
        return sum(copy.nbytes for copy in self.copies if copy.where is CopyPlace.HOST)


class TpuTime(Record):
    """All cores that work, the busiest first; ``unit`` says what a round is, ``program`` whose runs."""

    unit: RoundUnit
    program: str
    cores: tuple[TpuCore, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device, xla_programs: XlaPrograms) -> Self:
        """Divide the rounds of every core by its operations' categories."""
        if device.kind != DeviceKind.TPU or device.busiest is None:
            raise Unavailable("the run used no TPU")
        if device.missing:
            raise Unavailable(str(device.missing))
        unit, program = rounds_of(device.busiest, xla_programs)
        cores = [TpuCore.of(plane, unit, program) for plane in trace.devices(DeviceKind.TPU)]
        working = [core for core in cores if core is not None]
        if not working:
            raise Unavailable("the TPU's trace contains neither steps nor whole runs of a compiled program")
        return cls(unit, program, tuple(sorted(working, key=lambda core: -core.busy_ms)))

    @property
    def busiest(self) -> TpuCore:
        """The core with the most time in operations."""
        return self.cores[0]

    @property
    def barrier_skews_ms(self) -> tuple[float, ...]:
        """How much later the last core came to each barrier than the first; () without barriers."""
        waits = [core.barriers_ms for core in self.cores if core.barriers_ms]
        if len(waits) < 2 or len({len(core_waits) for core_waits in waits}) > 1:  # noqa: PLR2004 - two to compare
            return ()
        return tuple(max(core_waits) - min(core_waits) for core_waits in zip(*waits, strict=True))

    @property
    def uneven(self) -> float:
        """The spread of the cores' computing time, as a share of the most; 0 with one core."""
        times = [core.parts[COMPUTE] for core in self.cores]
        return (max(times) - min(times)) / max(times) if max(times) else 0.0


class TpuLaunches(Record):
    """The runs on the busiest core, all programs together. Milliseconds, summed over the window.

    `DoEnqueueProgram` on the host and the run on the line "XLA Modules" share run_id and queue_id. Both use
    the host's clock. A core that has nothing queued waits until the next enqueueing ends.
    """

    runs: int
    window_ms: float  # from the first run's start to the last one's end
    between_ms: float  # between two runs, where the core has no program
    late_ms: float | None  # the part until the host had enqueued the next run; None is unknown

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Match the core's runs to what the host enqueued."""
        core = device.busiest if device.kind == DeviceKind.TPU else None
        modules = module_runs(core) if core else ()
        named = ((one, one.runs or [(-1, -1)] * len(one.starts_ps)) for one in modules)
        runs = sorted(
            row for one, ids in named for row in zip(one.starts_ps.tolist(), one.ends_ps.tolist(), ids, strict=True)
        )
        if core is None or len(runs) < 2:  # noqa: PLR2004 - no time between them
            raise Unavailable("the trace shows fewer than two runs of compiled programs on a TPU")
        gaps = [(end, start, run) for (_, end, _), (start, _, run) in pairwise(runs) if start > end]
        number = core.name.rpartition(":")[2]
        queued = {  # when each run of this core was enqueued
            (int(event.stats["run_id"]), int(event.stats.get("queue_id", 0))): event.end_ps
            for event in trace.host_events(ENQUEUE)
            if "run_id" in event.stats and str(event.stats.get("device_ordinal", number)) == number
        }
        late = [min(start, queued[at]) - end for end, start, at in gaps if queued.get(at, end) > end]
        return cls(
            len(runs),
            (max(end for _, end, _ in runs) - runs[0][0]) / PS_PER_MS,
            sum(start - end for end, start, _ in gaps) / PS_PER_MS,
            sum(late) / PS_PER_MS if queued else None,
        )


def rounds_of(core: Plane, xla_programs: XlaPrograms) -> tuple[RoundUnit, str]:
    """Return what a round is, and the program whose runs are the rounds: the training one, else the longest."""
    modules = module_runs(core)
    longest = modules[0].title if modules else ""
    if any(line.name == STEP_LINE and len(line) for line in core.lines):
        return RoundUnit.STEP, longest
    try:
        return RoundUnit.STEP, compiled_steps(of_modules(modules, xla_programs), "run")[0]
    except Unavailable:
        return RoundUnit.RUN, longest


def starts_of(core: Plane, unit: RoundUnit, program: str) -> tuple[NDArray[np.int64], int]:
    """Return (rounds,) when a core's rounds begin, and when the last one ends, in ps; empty without rounds."""
    line = next((line for line in core.lines if line.name == STEP_LINE and len(line)), None)
    if unit is RoundUnit.STEP and line is not None:
        return line.start_ps, int((line.start_ps + line.duration_ps).max())
    module = next((run for run in module_runs(core) if run.title == program), None)
    if module is None:
        return np.zeros(0, np.int64), 0
    return np.sort(module.first_ps), int(module.last_ps.max())


def counted(line: Line) -> NDArray[np.bool_]:
    """Return (n,) whether an operation counts: loops and calls that contain others do not."""
    contain = np.array([category_of(kind) in CONTAINERS for kind in line.types], dtype=bool)
    counts: NDArray[np.bool_] = leaves(line) | ~contain[line.kind]
    return counts


def name_of(kind: EventType) -> str:
    """Return an instruction's name: "copy-done.5"."""
    return kind.display_name or kind.name.partition(" ")[0].lstrip("%")


def category_of(kind: EventType) -> str:
    """Return XLA's category of an instruction; "" is unknown."""
    return str(kind.stats.get("hlo_category", ""))


def part_of(category: str) -> TpuPart:
    """Return the part that an operation of XLA's category belongs to."""
    if category in ("infeed", "outfeed"):
        return INFEED if category == "infeed" else OUTFEED
    if category.startswith(("host send", "host recv", "send", "recv")):
        return HOST
    if category.startswith(TPU_COLLECTIVES):
        return COLLECTIVE
    waits = category.startswith(("copy-", "async-", "slice-")) or category.endswith(("-start", "-done"))
    return COPIES if waits else COMPUTE


def copies(line: Line, inside: NDArray[np.bool_], rounds: int) -> tuple[tuple[Copy, ...], Intervals]:
    """Pair the operations of a core's line "XLA Ops" that the (n,) mask ``inside`` selects.

    Returns the pairs, those waited for the longest first, and when any of them was under way.
    """
    by_name = by_key(((name_of(one), one.stats.get("program_id")), at) for at, one in enumerate(line.types))
    pairs, under_way = [], Intervals()
    for index, kind in enumerate(line.types):
        done = DONE.search(kind.name)
        started = OPERAND.findall(kind.name, done.end()) if done else ()
        ends = np.flatnonzero((line.kind == index) & inside)
        if not started or not len(ends):
            continue
        starts = line.start_ps[np.isin(line.kind, by_name.get((started[-1], kind.stats.get("program_id")), ()))]
        began = line.start_ps[ends]
        finish = began + line.duration_ps[ends]
        if len(starts):  # an end without a start counts from itself
            before = np.searchsorted(starts, began, side="right") - 1
            began = np.where(before >= 0, starts[np.maximum(before, 0)], began)
        under_way |= Intervals.merged(began, finish)
        category, moved = category_of(kind), arrays(kind.name)
        where = CopyPlace.CHIP if category.startswith(("copy", "slice", "async")) else CopyPlace.PEERS
        if any(array.space == HOST_SPACE for array in moved) or category.startswith("host"):
            where = CopyPlace.HOST
        # Those of its result, else those that the profiler counted.
        nbytes = float(moved[0].nbytes if moved else max(0, kind.stats.get("bytes_accessed", 0)))
        waited = float(line.duration_ps[ends].sum()) / PS_PER_MS / rounds
        pairs.append(Copy(name_of(kind), category, where, nbytes * len(ends) / rounds, waited, len(ends) / rounds))
    return tuple(sorted(pairs, key=lambda copy: -copy.exposed_ms)), under_way
