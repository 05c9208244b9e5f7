"""Values that a GPU's step copies to the host: for an operation there, or for Python, which waits for them.

A host that does not wait for the value launches ahead: the work after the copy was launched before it ended.
"""

from tfdoctor.facts.gpu.activity import D2H, H2D, GpuActivities, direction_of
from tfdoctor.facts.gpu.idle_gaps import HostWork, launches
from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.steps.steps import SteadySteps
from tfdoctor.facts.timeline.host_events import is_named
from tfdoctor.trace.names import COPY, INPUT_THREAD

# Operations with which TensorFlow copies a tensor to another device, "NAME/_14:_Recv": NAME makes the tensor.
EDGE = re.compile(r"(.+?)/_\d+:_(?:Host)?(?:Send|Recv)")
STATS = ("tf_op", "annotation", "level 0")  # Where a copy's event has that name, by TensorFlow's version
# The names of operations that hand over a batch: its copy to the GPU is no way back.
BATCH = re.compile(r"(?:^|/)(?:IteratorGetNext|OptionalGetValue|RemoteCall|args?_)")
# 2 µs: a gap that begins this soon after the copy begins with it; streams' clocks differ by less.
SETTLING_PS = 2_000_000


class Detour(Record):
    """An operation on the host between two copies; numbers and ms per training step."""

    name: str  # of the operation that makes the tensor which is copied back
    type: str
    calls: float
    copies_ms: float  # of the copies, while the GPU runs no kernel
    waiting_ms: float  # between them, same
    at: Location | None = None

    @property
    def ms(self) -> float:
        """The time in which the GPU waits for it."""
        return self.copies_ms + self.waiting_ms


class Detours(Record):
    """The detours of a step over the host, the longest first."""

    rows: tuple[Detour, ...]
    there_ps: tuple[int, ...] = ()  # the ends of their copies to the host

    @classmethod
    def measure(cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, program: Program | None) -> Self:
        """Pair each copy to the host with the next one back, where the GPU starts no kernel before it."""
        gpu = activities.busiest
        places = [(line, np.flatnonzero(is_named(line, COPY.match)).tolist()) for line in work_lines(gpu.plane)]
        copies = (line.event(at) for line, events in places for at in events)
        edges = sorted((copy for copy in copies if _source(copy)), key=lambda copy: copy.start_ps)
        if not edges:
            raise Unavailable("the trace does not name the tensors that are copied to the GPU")
        ran = _on_host(trace)
        starts = np.sort(gpu.kernel_starts_ps)
        found: dict[str, list[tuple[Event, Event]]] = defaultdict(list)
        for start, end in steady.stretches.spans:
            for there, back in pairwise([copy for copy in edges if start <= copy.start_ps < end]):
                name, span = _source(back), (there.start_ps, back.end_ps)
                returns = direction_of(there.name) is D2H and direction_of(back.name) is H2D
                first, last = starts.searchsorted(span, side="left")
                if not returns or first < last or BATCH.search(name):
                    continue
                if any(span[0] <= one.start_ps and one.end_ps <= span[1] for one in ran.get(name, ())):
                    found[name].append((there, back))
        kernels, rows = gpu.kernels | gpu.collectives, []
        for name, pairs in found.items():
            copied = Intervals.union((event.start_ps, event.end_ps) for pair in pairs for event in pair) - kernels
            whole = Intervals.union((there.start_ps, back.end_ps) for there, back in pairs) - kernels
            operation = program.by_name.get(name) if program else None
            at, kind = program.line_of(operation) if program else None, ran[name][0].name.rpartition(":")[2]
            times = steady.ms(copied), steady.ms(whole - copied)
            rows.append(Detour(name, kind, len(pairs) / steady.rounds, *times, at))
        rows.sort(key=lambda row: -row.ms)
        return cls(tuple(rows), tuple(there.end_ps for pairs in found.values() for there, _ in pairs))


def _source(copy: Event) -> str:
    """Return the operation whose tensor an event copies; "" where its name does not tell."""
    edges = (EDGE.match(str(copy.stats.get(stat) or "")) for stat in STATS)
    return next((CALLED.sub("", edge[1]) for edge in edges if edge), "")


def _on_host(trace: Trace) -> Mapping[str, list[Event]]:
    threads = (line for line in trace.host_lines if not line.name.startswith(INPUT_THREAD))
    named = ((*event.name.rpartition(":"), event) for line in threads for event in line.events())
    return by_key((CALLED.sub("", name), event) for name, _, kind, event in named if name and kind.isidentifier())


class HostSyncs(Record):
    """The busiest GPU; numbers and ms per training step."""

    reads: float  # copies from device to host that are read there
    syncs: float  # after which the GPU ran out of work
    host_ms: float = 0.0  # idle time after these, inside of the call that is a step, less the waits for batches
    between_ms: float = 0.0  # same, outside of the call

    @classmethod
    def measure(
        cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, host: HostWork, detours: Detours | None
    ) -> Self:
        """Find the idle stretches that begin with the end of a copy back, but for those of device-placement.

        An operation on the host takes that copy, and Python does not read it.
        """
        gpu, (first, last) = activities.busiest, steady.stretches.bounds_ps
        back = np.array([direction_of(kind.name) is D2H for kind in gpu.plane.types], bool)
        ends = [(line.start_ps + line.duration_ps)[back[line.kind]] for line in work_lines(gpu.plane)]
        copied = np.setdiff1d(np.concatenate([np.zeros(0, np.int64), *ends]), detours.there_ps if detours else ())
        settling = Intervals.merged(copied, copied + SETTLING_PS + 1)
        starts, launched = launches(trace, gpu.plane)
        idle = Intervals(((first, last),)) - gpu.busy.within(first, last)
        launched = np.append(launched, np.iinfo(np.int64).min)[starts.searchsorted(idle.ends_ps)]
        began = idle.starts_ps
        # The work that ends a gap after a copy was launched after the gap began. Outliers are left out.
        synced = steady.holds(began) & settling.holds(began) & (launched > began)
        drained = Intervals.merged(began[synced], idle.ends_ps[synced]) - host.waits
        reads, syncs = (int(one.sum()) / steady.rounds for one in (steady.holds(copied), synced))
        return cls(reads, syncs, *steady.split_ms(drained))
