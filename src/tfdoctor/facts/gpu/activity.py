"""When each GPU ran kernels, copies and collectives: unions over its streams.

A copy is not a kernel, though xprof counts it as one and ROCm records it as one. Clearing memory counts
as a copy, as in Breakdown.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.steps.steps import SteadySteps
from tfdoctor.facts.timeline.host_events import is_named, spans_of
from tfdoctor.trace.names import COLLECTIVE, COPY, COPY_DIRECTION

# The operation in the names of NCCL's and RCCL's kernels: ncclDevKernel_AllReduce_Sum_f32_RING_LL, ...
KIND = re.compile(r"(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AllToAll|SendRecv)", re.IGNORECASE)


class GpuActivity(Record, eq=False):
    """One GPU; kernels, copies and collectives may overlap each other, on streams of their own."""

    name: str  # "/device:GPU:0"
    kernels: Intervals
    copies: Intervals
    collectives: Intervals
    kernel_starts_ps: NDArray[np.int64]  # (n,) without collectives
    plane: Plane

    @property
    def busy(self) -> Intervals:
        """When any of its streams worked."""
        return self.kernels | self.copies | self.collectives


class GpuActivities(Record, eq=False):
    """All visible GPUs, the busiest first."""

    gpus: tuple[GpuActivity, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device) -> Self:
        """Sort the events of every GPU's streams."""
        if device.kind == DeviceKind.GPU and device.missing:
            raise Unavailable(str(device.missing))
        if device.kind != DeviceKind.GPU:
            raise Unavailable("the run used no GPU, so it has no kernels, copies or launch gaps")
        gpus = []
        for plane in trace.devices(DeviceKind.GPU):
            kinds: tuple[list[Intervals], ...] = ([], [], [])
            starts = [np.zeros(0, np.int64)]
            for line in work_lines(plane):
                copy = is_named(line, COPY.match)
                collective = is_named(line, COLLECTIVE.match) & ~copy
                kernel = ~(copy | collective)
                for spans, mask in zip(kinds, (kernel, copy, collective), strict=True):
                    spans.append(spans_of(line, mask))
                starts.append(line.start_ps[kernel])
            kernels, copies, collectives = map(Intervals.any_of, kinds)
            gpus.append(GpuActivity(plane.name, kernels, copies, collectives, np.concatenate(starts), plane))
        return cls(tuple(sorted(gpus, key=lambda gpu: -gpu.busy.total)))

    @property
    def busiest(self) -> GpuActivity:
        """The GPU whose steps are examined."""
        return self.gpus[0]


class Collectives(Record):
    """The busiest GPU's kernels of NCCL or RCCL; ms and numbers per training step, or of the trace."""

    ms: float  # with the wait for the other GPUs, in which the kernel runs
    exposed_ms: float  # while no other kernel of the GPU runs
    kinds: tuple[tuple[str, float], ...]  # ("AllReduce", calls), the most frequent first

    @classmethod
    def measure(cls, activities: GpuActivities, steady: SteadySteps) -> Self:
        """Separate the collectives' time by whether other kernels run meanwhile."""
        gpu, calls = activities.busiest, Counter[str]()
        for line in work_lines(gpu.plane):
            kinds = line.kind[is_named(line, COLLECTIVE.match) & steady.holds(line.start_ps)]
            for kind, number in zip(*np.unique(kinds, return_counts=True), strict=True):
                named = KIND.search(gpu.plane.types[kind].name)
                calls[named[1] if named else "other"] += int(number)
        per_step = tuple((name, number / steady.rounds) for name, number in calls.most_common())
        return cls(steady.ms(gpu.collectives), steady.ms(gpu.collectives - gpu.kernels), per_step)


class CopyDirection(StrEnum):
    """Where a copy goes."""

    H2D = "host to device"
    D2H = "device to host"
    D2D = "device to device"  # on one device with CUPTI; ROCm uses the same word for copies to another device
    PEER = "to another device"
    CLEAR = "clearing"
    OTHER = "in an unknown direction"


class HostMemoryKind(StrEnum):
    """The host's side of a copy.

    The driver copies pageable memory through a buffer of its own: this is slower, and kernels that are
    launched later on the stream wait for it.
    """

    PAGEABLE = "pageable"
    PINNED = "pinned"
    UNKNOWN = "unknown"


H2D, D2H, D2D, PEER, CLEAR, OTHER = CopyDirection
PAGEABLE, PINNED, UNKNOWN = HostMemoryKind

# 'kind_src:pinned kind_dst:device size:4096 dest:0 async:1' (CUPTI since TensorFlow 2.6), 'size:4096 dest:0
# async:1' (2.3, 2.4), 'kind:Unknown size:0 dest:512 async:1' (ROCm, which does not know the size).
DETAIL = re.compile(r"\b(\w+):(\S+)")

LETTERS = {"HD": H2D, "DH": D2H, "DD": D2D, "PP": PEER}
HOST_SIDE = {H2D: "kind_src", D2H: "kind_dst"}


class Transfer(Record):
    """The copies of one direction; ms, bytes and numbers per training step, or of the whole trace."""

    direction: CopyDirection
    count: float
    ms: float  # union over streams
    exposed_ms: float  # while the GPU runs no kernel and no collective
    nbytes: float | None  # None where the trace does not contain sizes
    rate: float | None  # bytes per second during the copies; same
    memory: Mapping[HostMemoryKind, float]  # bytes by kind of host memory; empty for copies without the host

    @property
    def host_memory(self) -> HostMemoryKind:
        """The kind of host memory that most bytes come from or go to."""
        return max(self.memory, key=self.memory.__getitem__) if self.memory else UNKNOWN


class Transfers(Record):
    """The busiest GPU's copies that occur, in the order of ``CopyDirection``."""

    directions: tuple[Transfer, ...]

    @classmethod
    def measure(cls, trace: Trace, activities: GpuActivities, steady: SteadySteps) -> Self:
        """Read every copy's direction, size and memory."""
        gpu, calls = activities.busiest, dict[int, str]()
        rocm = any(kind.name.startswith("__amd_rocclr_copy") for kind in gpu.plane.types)
        for line in trace.host_lines if rocm else ():  # where only the host's call has the direction
            events, ids = line.stats.ids("correlation_id")
            named = is_named(line, COPY_DIRECTION.search)[events]
            names = [line.types[kind].name for kind in line.kind[events[named]].tolist()]
            calls |= dict(zip(ids[named].tolist(), names, strict=True))
        copies: dict[CopyDirection, list[Event]] = defaultdict(list)
        for line in work_lines(gpu.plane):
            steady_copies = is_named(line, COPY.match) & steady.holds(line.start_ps)
            for event in map(line.event, np.flatnonzero(steady_copies).tolist()):
                tells = bool(COPY_DIRECTION.search(event.name))
                call = event.name if tells else calls.get(int(event.stats.get("correlation_id", 0)), "")
                copies[CLEAR if "memset" in event.name.lower() else direction_of(call)].append(event)
        directions = []
        for way in (way for way in CopyDirection if way in copies):
            memory, total = dict.fromkeys(HostMemoryKind, 0.0), 0
            for copy in copies[way]:
                told = dict(DETAIL.findall(str(copy.stats.get("memcpy_details", ""))))
                size, kind = told.get("size", ""), told.get(HOST_SIDE.get(way, ""), "").lower()
                nbytes = int(size) if size.isascii() and size.isdigit() else 0
                memory[HostMemoryKind(kind) if kind in memory else UNKNOWN] += nbytes / steady.rounds
                total += nbytes
            spans = Intervals.union((copy.start_ps, copy.end_ps) for copy in copies[way])
            times = steady.ms(spans), steady.ms(spans - gpu.kernels - gpu.collectives)
            lasted, each = spans.total / PS_PER_MS / 1e3, total / steady.rounds if total else None
            rate, sides = total / lasted if total and lasted else None, memory if total and way in HOST_SIDE else {}
            directions.append(Transfer(way, len(copies[way]) / steady.rounds, *times, each, rate, sides))
        return cls(tuple(directions))

    def __getitem__(self, direction: CopyDirection) -> Transfer:
        return next(
            (transfer for transfer in self.directions if transfer.direction == direction),
            Transfer(direction, 0.0, 0.0, 0.0, 0.0, None, {}),
        )


def direction_of(name: str) -> CopyDirection:
    """Return where a copy goes, by its name or that of the call that launched it."""
    letters = COPY_DIRECTION.search(name)
    return LETTERS.get("".join(letters.groups()).upper(), OTHER) if letters else OTHER
