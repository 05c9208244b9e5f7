"""Loops inside the step's graph: their iterations, and the time that they take outside of operations."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.dataflow import GRADIENT_SCOPE
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import CALLED, Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.operation_types import UPDATES, WHILES
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.facts.steps.steps import SteadySteps, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.host_events import is_named, spans_of
from tfdoctor.trace.names import EXECUTOR, FRAME, INPUT_THREAD

PLACEHOLDER, IDENTITY, ADD = "Placeholder", "Identity", "AddV2"
# Operations that put an element into the list that is their first input, and change no other element.
WRITES = frozenset({"TensorListSetItem", "TensorListPushBack"})
# Operations by which iterations can depend on each other without an edge: writes of variables, and Python. Random
# numbers are drawn in any order.
EFFECTS = re.compile(rf"{UPDATES.pattern}|(?:Eager)?PyFunc\w*|Resource(?:Accumulator|CountUpTo)\w*")


class GraphLoop(Record):
    """A ``while`` of the graph with its gradient's; numbers and ms per training step."""

    name: str  # its scope, such as "sequential/lstm/while"; "" is unknown
    iterations: float  # of the forward or of the backward loop
    operations: float  # recorded; TensorFlow does not record all of the cheap ones
    ms: float  # of these operations
    rows: tuple[OperationTime, ...] = ()  # these operations
    at: Location | None = None  # the user's line that made it
    layer: str = ""  # the innermost layer that made it, such as "lstm"
    independent: bool = False  # no iteration needs what another one computed; False: or unknown


class LoopWork(Record):
    """The loops, longest first, and what the executor's threads do in their iterations, in ms per training step.

    ``scheduling_ms`` is the exposed time in which the executor works on iterations while no recorded operation
    runs: it starts operations, passes their tensors on, and runs those that are too cheap to be recorded.
    ``waiting_ms`` is all time without a recorded operation from the first to the last one of each loop: it
    includes ``scheduling_ms``, the first iterations and what the threads wait for each other.

    ``numbered`` is the highest number that the executor gave an iteration in a step (median of the steps). A loop's
    own iterations are counted by its recorded operations, of which a loop of cheap ones has few or none; where
    the step has a single loop, the number is that loop's.
    """

    loops: tuple[GraphLoop, ...]
    scheduling_ms: float = 0.0
    waiting_ms: float = 0.0
    numbered: float = 0.0

    @classmethod
    def measure(
        cls, trace: Trace, steps: Steps, activity: Activity, operations: Operations, device: Device,
        program: Program | None,
    ) -> Self:  # fmt: skip
        """Group the operations by the bodies of loops, and gather the executor's events of later iterations.

        Raises:
            Unavailable: the device is no CPU, or one call contains several steps, whose own loop looks the same.
        """
        if device.kind != DeviceKind.CPU:
            raise Unavailable("loops inside the step are measured on CPUs only")
        if activity.within_data or any(step.calls > 1 for step in steps.steps):
            raise Unavailable("one call contains several steps, so the loop inside a step cannot be told apart")
        lines = [line for line in trace.host_lines if not line.name.startswith(INPUT_THREAD)]
        steady = SteadySteps.of(steps)
        iterating, numbered = _iterations(lines, steady.stretches.spans)
        loops = _loops(operations, program, numbered, trace)
        if not loops:
            return cls(())
        busy = activity.of(Stage.DEVICE) | activity.wait
        scheduling = steady.ms(iterating - busy)
        waiting = steady.ms((_spans(lines, steady.stretches.spans) | iterating) - busy)
        return cls(loops, scheduling, max(scheduling, waiting), numbered)

    @property
    def iterations(self) -> float:
        """The iterations of the longest loop."""
        return max((self.numbered, *(loop.iterations for loop in self.loops)))

    @property
    def ms(self) -> float:
        """The time of the loops: in their operations and between them."""
        return self.scheduling_ms + sum(loop.ms for loop in self.loops)

    @property
    def mean_ms(self) -> float:
        """The mean time of a recorded operation in the loops; 0 where none was recorded."""
        operations = sum(loop.operations for loop in self.loops)
        return sum(loop.ms for loop in self.loops) / operations if operations else 0.0

    def independent(self, iterations: float, operation_ms: float) -> Self:
        """Return the loops whose iterations do not depend on each other, without the others.

        Only loops of that many iterations, with operations of at most ``operation_ms`` in the mean, are returned.
        What lies outside of operations cannot be divided among loops: it is left out where there are others.
        """
        chosen = tuple(
            loop
            for loop in self.loops
            if loop.independent and loop.iterations >= iterations and loop.ms <= operation_ms * loop.operations
        )
        if len(chosen) < len(self.loops):
            return replace(self, loops=chosen, scheduling_ms=0.0, waiting_ms=0.0, numbered=0.0)
        return self


def _loops(operations: Operations, program: Program | None, numbered: float, trace: Trace) -> tuple[GraphLoop, ...]:
    """Return the loops with their lines, longest first; of a single one, with the executor's count.

    If no operation of a loop was recorded in the steps, the loop is that of the program; if it has several, the one
    whose operations are in the trace at another time, or one without a name.
    """
    groups = by_key((_scope(frame), row) for row in operations.rows if (frame := _frame(row.name)))
    recorded = program.by_name.values() if program else ()
    built = {one.name: one for one in recorded if one.type in WHILES and GRADIENT_SCOPE not in one.name}
    alone = independent(program, built.values())
    if not groups and numbered:
        kinds = trace.host.types if trace.host else ()
        traced = {_scope(_frame(CALLED.sub("", kind.name))) for kind in kinds}
        names = [name for name in built if name in traced] or [*built]
        groups[names[0] if len(names) == 1 else ""] = []
    single, loops = numbered if len(groups) == 1 else 0.0, []
    for name, rows in groups.items():
        one, calls, time = built.get(name), [row.calls for row in rows], sum((row.ms for row in rows), 0.0)
        at, layer = (one.at, one.layer) if one else (None, "")
        iterations = max((*calls, single))
        loops.append(GraphLoop(name, iterations, sum(calls, 0.0), time, tuple(rows), at, layer, name in alone))
    return tuple(sorted(loops, key=lambda loop: -loop.iterations))


def _frame(name: str) -> str:
    """Return the innermost loop that an operation is in, by its name; "" is none."""
    frames = list(FRAME.finditer(name))
    return name[: frames[-1].start()] if frames else ""


def _scope(frame: str) -> str:
    """Return the scope of a loop, or of the loop whose gradient this is ("a/while/a/while_grad": "a/while")."""
    scope = frame.rpartition(GRADIENT_SCOPE)[2]
    half = len(scope.removesuffix("_grad")) // 2
    return scope[:half] if scope.endswith("_grad") and scope[:half] == scope[half + 1 : -5] else scope


def _iterations(lines: Iterable[Line], stretches: Iterable[tuple[int, int]]) -> tuple[Intervals, float]:
    """Return when the executor's threads worked on any but the first iteration of a loop, and the highest number.

    That is the highest that the executor gave an iteration in a step: the median of the steps.
    """
    working, starts, numbers = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for line in lines:
        events, iterations = line.stats.integers("iter_num")
        own = is_named(line, EXECUTOR.__eq__)[events]
        mask = np.zeros(len(line), bool)
        mask[events[own & (iterations != 0)]] = True
        working.append(spans_of(line, mask))
        starts.append(line.start_ps[events[own]])
        numbers.append(iterations[own])
    times, iterations = np.concatenate(starts), np.concatenate(numbers)
    order = times.argsort(kind="stable")
    times, iterations = times[order], iterations[order]
    edges = (times.searchsorted(stretch).tolist() for stretch in stretches)
    highest = [float(iterations[first:last].max(initial=0)) for first, last in edges]
    return Intervals.any_of(working), float(np.median(highest)) if highest else 0.0


def _spans(lines: Iterable[Line], stretches: Iterable[tuple[int, int]]) -> Intervals:
    """Return when each loop ran: from the first to the last operation of its body, in each step."""
    events = defaultdict[str, list[NDArray[np.int64]]](list)
    for line in lines:
        frames = np.array([_frame(kind.name) for kind in line.types], dtype=object)
        for frame in {*frames} - {""}:
            mask = np.isin(line.kind, np.flatnonzero(frames == frame))
            starts = line.start_ps[mask]
            events[frame].append(np.stack((starts, starts + line.duration_ps[mask]), axis=1))
    times = [np.concatenate(found) for found in events.values()]
    return Intervals.union(
        (int(inside[:, 0].min()), int(inside[:, 1].max()))
        for start, end in stretches
        for found in times
        if len(inside := found[(found[:, 0] >= start) & (found[:, 0] < end)])
    )


def independent(program: Program | None, loops: Iterable[Operation]) -> frozenset[str]:
    """Return the names of the loops whose bodies are known and pass nothing to the next iteration."""
    # The graphs of a loop begin with the placeholder of its counter.
    wanted = {f"{loop.name}/{loop.sources[0]}": loop.name for loop in loops if loop.sources}
    found: dict[str, bool] = {}
    for _, group in groupby(program.operations if program else (), lambda one: one.graph):
        operations = tuple(group)
        name = wanted.get(operations[0].name)
        alone = _passes_nothing(operations) if name and name not in found else None
        if name and alone is not None:
            found[name] = alone
    return frozenset(name for name, alone in found.items() if alone)


def _passes_nothing(operations: tuple[Operation, ...]) -> bool | None:
    """Return whether no value of an iteration depends on what another one computed.

    A body returns its variables by identities that nothing uses, and takes them by its first placeholders: None
    where this graph is the loop's condition, or its results are unknown. A variable that is neither the same in
    each iteration nor a counter is the loop's state: no value may be computed from it. A list is state as well:
    each iteration may write an element, and none may read one.
    """
    used = {name for one in operations for name in one.sources}
    leaving = [one for one in operations if one.type == IDENTITY and one.name not in used]
    entering = [one for one in operations if one.type == PLACEHOLDER][: len(leaving)]
    types = [[one.outputs[0][0] for one in ends if one.outputs] for ends in (entering, leaving)]
    if types[0] != types[1] or len(types[0]) < len(leaving) or not leaving:
        return None
    if any(EFFECTS.fullmatch(one.type) for one in operations):
        return False
    by_name = {one.name: one for one in operations}
    state, ahead = set[str](), list[str]()
    for old, new in zip(entering, leaving, strict=True):
        made: Operation | None = new
        while made is not None and made.type == IDENTITY:  # it only passes a value on
            made = by_name.get(made.sources[0]) if made.sources else None
        same = made is old
        if made is not None and made.type == ADD and old.outputs[0][1] == ():
            added = [by_name.get(name) for name in made.sources]  # a counter is itself and constants
            steps = [one for one in added if one is not old]
            same = len(added) == len(steps) + 1 and all(one and one.type == "Const" for one in steps)
        state |= set() if same else {old.name}
        while made is not None and made.type in WRITES:  # of a list, what is written into it and where
            ahead += made.sources[1:]
            made = by_name.get(made.sources[0]) if made.sources else None
        ahead += [made.name] if made is not None and made is not old else []
    return state.isdisjoint(reached(ahead, lambda name: by_name[name].sources if name in by_name else ()))
