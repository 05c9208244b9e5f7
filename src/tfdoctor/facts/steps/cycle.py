"""Operations that train, and the rounds in which they recur: the candidates for what a training step is.

TensorFlow stops recording an operation that proves cheap after some dozen executions: a graph that has
run for a while no longer shows conditions, counters and the updates of small weights.
"""

from enum import IntFlag

from tfdoctor.facts.kit import *
from tfdoctor.facts.timeline.host_events import executors
from tfdoctor.trace.names import ASSIGN, FRAME, GRADIENT, UPDATE, XLA_RUN

DEPTH = 8  # How many executors may nest on a thread: a loop's body may run functions
MOSTLY = 0.9  # Share of the rounds that must look alike: a last batch or an evaluation in between is tolerated
Times = NDArray[np.int64]  # in ps; (n, 2) for starts and ends
Rows = NDArray[np.bool_]  # (m,) which of the operations of a TrainingWork


class Role(IntFlag):
    """What an operation does for training."""

    GRADIENT = 1
    UPDATE = 2  # by an optimizer, certainly
    ASSIGN = 4  # to a weight, a metric, a counter or an accumulated gradient
    CONDITION = 8  # of a loop: it runs once before each iteration, and once more at the end
    PLAIN = 16  # anything else
    TRAINS = GRADIENT | UPDATE | ASSIGN
    WORKS = TRAINS | PLAIN


class TrainingWork(Record, eq=False):
    """m operations of the host, by their start.

    ``role`` and ``frame`` go by kind: a frame is the loop that an operation is in, by its name
    ("while", "while/body/_1/while/while"), "" outside of loops.
    """

    kind: NDArray[np.int32]  # (m,)
    start_ps: Times  # (m,)
    run: NDArray[np.uint64]  # (m,) the execution's id, 0 unknown
    role: NDArray[np.int32]  # (number of kinds,)
    frame: tuple[str, ...]  # (number of kinds,)

    @classmethod
    def gather(cls, trace: Trace, *, compiled: bool = False) -> Self:
        """Collect them from all threads; ``compiled`` takes programs of XLA for training."""
        labels = [_label(kind, compiled=compiled) for kind in (trace.host.types if trace.host else ())]
        role = np.array([role for role, _ in labels], np.int32)
        kinds, starts, runs = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for line in (line for line in trace.host_lines if len(line)):
            indices = np.flatnonzero(role[line.kind])
            begins, ends, ids = executors(line)
            held = covering(begins, ends, line.start_ps[indices])  # -1 for none: the last
            kinds.append(line.kind[indices])
            starts.append(line.start_ps[indices])
            runs.append(np.append(ids, np.uint64(0))[held])
        start = np.concatenate(starts)
        order = np.argsort(start, kind="stable")
        kind, run = np.concatenate(kinds)[order], np.concatenate(runs)[order]
        return cls(kind, start[order], run, role, tuple(frame for _, frame in labels))

    def having(self, role: Role, frame: str | None = None) -> Rows:
        """Return (m,) whether an operation has one of these roles, in exactly this frame."""
        kinds = (self.role & role) != 0
        if frame is not None:
            kinds &= np.array([of_kind == frame for of_kind in self.frame], dtype=bool)
        return np.asarray(kinds[self.kind], np.bool_)


def _label(kind: EventType, *, compiled: bool) -> tuple[int, str]:
    """Return the role of an event's kind, 0 for none, and its frame."""
    if compiled and XLA_RUN.fullmatch(kind.name):
        return Role.GRADIENT | Role.UPDATE, ""
    name, colon, ending = kind.name.rpartition(":")
    if not colon or not name or name.endswith(":") or ending != kind.display_name:
        return 0, ""
    loops = list(FRAME.finditer(name))  # the innermost is the last; in its body or its condition
    frame = name[: loops[-1].start()] if loops else ""
    if loops and loops[-1][1] == "cond":
        return Role.CONDITION, frame
    role = Role.PLAIN
    if GRADIENT.search(name) or GRADIENT.search(ending):
        role |= Role.GRADIENT
    if UPDATE.fullmatch(ending):
        role |= Role.UPDATE
    elif ASSIGN.fullmatch(ending):
        role |= Role.ASSIGN
    return int(role), frame


def covering(starts: Times, ends: Times, times: Times) -> NDArray[np.intp]:
    """Return (n,) the last of the spans, sorted by start, that contains each time; -1 for none."""
    latest = np.searchsorted(starts, times, side="right") - 1
    covers = np.full(len(times), -1, np.intp)
    for _ in range(DEPTH if len(starts) else 0):
        holds = (covers < 0) & (latest >= 0) & (times <= ends[np.maximum(latest, 0)])
        covers[holds] = latest[holds]
        latest -= 1
    return covers


class Cycle(Record, eq=False):
    """Whole rounds of something that trains, by their start, in ps.

    ``updates`` counts the operations of one round that certainly belong to an optimizer, ``activities``
    all that the trace shows, by distinct name; operations of nested rounds are left out.
    """

    source: StepSource  # GRAPH_PERIOD or REPEATED_CALL
    where: str  # "the loop `while` of `train_epoch`", for people
    starts_ps: Times  # (n,)
    ends_ps: Times  # (n,)
    updates: int
    activities: int
    call: str = ""  # the function that is called, for REPEATED_CALL

    @classmethod
    def of(cls, source: StepSource, where: str, spans: Iterable[Times], work: TrainingWork, rows: Rows) -> Self:
        """Return the rounds of these spans; ``rows`` are the operations of all rounds."""
        rounds = np.concatenate([np.zeros((0, 2), np.int64), *spans])
        starts, ends = rounds[np.argsort(rounds[:, 0], kind="stable")].T
        kinds = np.unique(work.kind[rows])
        updates = int(np.count_nonzero(work.role[kinds] & Role.UPDATE))
        return cls(source, where, starts, ends, updates, len(kinds))

    def __len__(self) -> int:
        return len(self.starts_ps)

    @property
    def total_ps(self) -> int:
        """The total time of the rounds, in ps."""
        return int((self.ends_ps - self.starts_ps).sum())

    def takes_gradients(self, gradients: Times) -> bool:
        """Whether gradients are computed in it, round by round."""
        held = holding(gradients, np.stack((self.starts_ps, self.ends_ps), axis=1))
        return len(self) > 0 and int(held.sum()) >= MOSTLY * len(self)

    def contains(self, other: "Cycle") -> bool:
        """Whether the other's rounds lie in this one's, between its first and its last whole round."""
        if not len(self) or (len(self), -self.total_ps) >= (len(other), -other.total_ps):
            return False
        begun = other.starts_ps[(other.starts_ps >= self.starts_ps[0]) & (other.starts_ps < self.ends_ps[-1])]
        latest = np.searchsorted(self.starts_ps, begun, side="right") - 1
        inside = np.count_nonzero(begun < self.ends_ps[latest])
        return len(begun) > 0 and bool(inside >= MOSTLY * len(begun))

    def keeps_step_with(self, other: "Cycle") -> bool:
        """Whether the rounds of the two alternate, as two halves of one step do."""
        few, many = sorted((self.starts_ps, other.starts_ps), key=len)
        return len(many) - len(few) <= 1 and bool(np.all(np.diff(np.searchsorted(many, few)) == 1))


def between(edges: Times) -> Times:
    """Return (n - 1, 2) spans between (n,) edges."""
    return np.stack((edges[:-1], edges[1:]), axis=1)


def holding(times: Times, spans: Times) -> NDArray[np.bool_]:
    """Return (n,) which spans hold one of some times, or of some positions, which are sorted."""
    begin, end = times.searchsorted(spans).T
    return np.asarray(end > begin, np.bool_)
