"""Finds training steps that nobody marked: what recurs, changes weights and takes gradients.

A loop inside a graph shows its iterations by the condition that runs before each; `for x in dataset`
in a graph, by the iterator that calls its body; a loop in Python, by the call of the function that
trains; an eager one, by its sequence of operations. Where several of these recur, the step is the
outermost with optimizer updates of its own. Where that does not decide, the steps are unavailable.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.steps.cycle import MOSTLY, Cycle, Role, Times, TrainingWork, between, covering, holding
from tfdoctor.facts.steps.graph_cycles import graph_cycles
from tfdoctor.facts.steps.step import Step, steps_between
from tfdoctor.facts.timeline.host_events import is_named
from tfdoctor.trace.names import ASSIGN, EAGER_CALL, EAGER_NEXT, GRADIENT, TRAINING_CALLS, UPDATE

FEWEST = 4  # Whole rounds from which a cycle counts, and equal periods from which a sequence counts as periodic
OUTWEIGHS = 2.0  # Ratio from which the longer of two loops that train one after the other is the step
CLEARLY = 2  # Ratio of activities from which one of two nested loops, neither with a visible optimizer, is the step
OWN_UPDATES = 4  # Updates from which an outer loop has an optimizer, and not only a decaying average


def search(trace: Trace, *, in_graph: bool = False) -> tuple[StepSource, list[Step]]:
    """Return the source and the steps; no steps when nothing recurs.

    ``in_graph`` says that a loop inside a graph is known to train, so XLA programs in it do.

    Raises:
        Unavailable: something recurs and trains, but which rounds are the steps is not certain.
    """
    cycles = graph_cycles(trace, TrainingWork.gather(trace))
    if not cycles and in_graph:
        cycles = graph_cycles(trace, TrainingWork.gather(trace, compiled=True))
    cycles = cycles or eager_cycles(trace)
    if not cycles:
        return StepSource.NONE, []
    cycle = choose(cycles)
    if len(cycle) < FEWEST and cycle.call not in TRAINING_CALLS:
        rounds = "a single whole iteration" if len(cycle) == 1 else f"only {len(cycle)} whole iterations"
        raise Unavailable(
            f"{cycle.where} trains, but the trace shows {rounds} of it, too few to identify the steps",
            "record for longer",
        )
    return cycle.source, steps_between(cycle.starts_ps, cycle.ends_ps)


def choose(cycles: list[Cycle]) -> Cycle:
    """Return the cycle whose rounds are the training steps.

    Raises:
        Unavailable: two cycles qualify equally.
    """
    left = [cycle for cycle in cycles if not any(_yields(cycle, other) for other in cycles)]
    first, *others = sorted(left, key=lambda cycle: -cycle.total_ps)
    alternating = [other for other in others if first.keeps_step_with(other)]
    nested = [other for other in others if first.contains(other) or other.contains(first)]
    equal = [one for one in others if one not in alternating and first.total_ps < OUTWEIGHS * one.total_ps]
    if nested or equal:
        why = "one inside the other, and both may run the optimizer" if nested else "with similar total times"
        raise Unavailable(
            f"{first.where} and {(nested or equal)[0].where} both train, {why}, so the steps are ambiguous",
            "record a window with only one of them, or mark the steps with "
            "`tf.profiler.experimental.Trace('train', step_num=n, _r=1)`",
        )
    # A round of alternating cycles lasts from the first one's start to the last one's end.
    joined = [first, *alternating]
    begins = min(joined, key=lambda cycle: int(cycle.starts_ps[0]))
    ends = begins.ends_ps.copy()
    for other in joined:
        place = np.searchsorted(begins.starts_ps, other.starts_ps, side="right") - 1
        np.maximum.at(ends, place, other.ends_ps)
    where = " with ".join([begins.where, *(cycle.where for cycle in joined if cycle is not begins)])
    return replace(begins, where=where, ends_ps=ends)


def _yields(cycle: Cycle, other: Cycle) -> bool:
    """Whether of two nested cycles the other is the step, so that this one is not."""
    if other.contains(cycle):  # it has the optimizer, and this one only gathers gradients
        if not other.updates:
            return not cycle.updates and other.activities >= CLEARLY * cycle.activities
        if not cycle.updates:
            return other.updates >= OWN_UPDATES or CLEARLY * other.activities >= cycle.activities
        return CLEARLY * other.updates > cycle.updates
    if not cycle.contains(other):
        return False
    if not cycle.updates:  # the other has the optimizer, and this one only counts its rounds
        return other.updates > 0 or other.activities >= CLEARLY * cycle.activities
    return other.updates >= OWN_UPDATES * cycle.updates


class Periods(Record, eq=False):
    """A sequence of operations divided before each operation of one kind; only the n whole periods that train."""

    spans: Times  # positions
    steady: slice  # one of the most common periods
    asks: bool  # the kind asks for a batch


def eager_cycles(trace: Trace) -> list[Cycle]:
    """Return the cycles of the thread that runs the most operations one by one, the shortest first.

    An operation that occurs once per step divides the sequence into equal periods; one that occurs twice
    divides it into unequal halves. So a kind of operation is a step's boundary when the periods between its
    occurrences are equal and each holds both a gradient and an update.
    """
    number = [int(is_named(line, _is_eager).sum()) for line in trace.host_lines]
    if not any(number):
        return []
    sequence = OperationSequence(trace.host_lines[number.index(max(number))], TrainingWork.gather(trace))
    divided = filter(None, map(sequence.periods, np.unique(sequence.kind).tolist()))
    regular = sorted(divided, key=lambda one: -len(one.spans))
    finer, cycles, changes = None, list[Cycle](), sequence.changes
    while regular:  # one for each length
        same = [periods for periods in regular if len(regular[0].spans) - len(periods.spans) <= 1]
        regular = regular[len(same) :]
        # A step begins with the batch, else with the operation after the last update.
        periods = max(same, key=lambda one: (one.asks, changes[changes >= one.steady.start][0] - one.steady.start))
        cycle = sequence.cycle(periods, finer)
        if cycle.activities:
            cycles.append(cycle)
            finer = finer or periods
    return cycles


def _is_eager(name: str) -> bool:
    return name.startswith(EAGER_CALL)


class OperationSequence:
    """The operations of one thread in order, and which take gradients or change weights."""

    def __init__(self, line: Line, work: TrainingWork) -> None:
        """Find the roles by the types; functions that the thread calls take gradients if their graphs do."""
        rows = np.flatnonzero(is_named(line, _is_eager))
        self.line, self.kind, self.start_ps = line, line.kind[rows], line.start_ps[rows]
        names = [kind.name.removeprefix(EAGER_CALL) for kind in line.types]
        update, assign, gradient = (
            np.array([bool(test(name)) for name in names])[self.kind]
            for test in (UPDATE.fullmatch, ASSIGN.fullmatch, GRADIENT.search)
        )
        inside = work.start_ps[work.having(Role.GRADIENT)]
        held = covering(self.start_ps, self.start_ps + line.duration_ps[rows], inside)
        gradient[held[held >= 0]] = True
        self.gradients, self.changes = np.flatnonzero(gradient), np.flatnonzero(update | assign)
        self.changing = np.array((update, update | assign))  # (2, n): weights, any variable

    def periods(self, kind: int) -> Periods | None:
        """Divide it before each operation of a kind; None unless the periods are steps.

        All of them train, but for a request for a batch, which may occur in evaluation as well.
        """
        spans = between(np.flatnonzero(self.kind == kind))
        training = spans[holding(self.gradients, spans) & holding(self.changes, spans)]
        asks = EAGER_NEXT.fullmatch(self.line.types[kind].name) is not None
        if len(training) < FEWEST or not (asks or len(training) / len(spans) >= MOSTLY):
            return None
        contents = [self.kind[start:end].tobytes() for start, end in training]
        content, often = Counter(contents).most_common(1)[0]
        steady = slice(*training[contents.index(content)].tolist())
        return Periods(training, steady, asks) if often / len(contents) >= MOSTLY else None

    def cycle(self, periods: Periods, finer: Periods | None) -> Cycle:
        """Return the rounds, without the changes that belong to shorter periods inside them."""
        number = self.changing[:, periods.steady].sum(axis=1)
        if finer is not None:
            begun = finer.spans[:, 0]
            rounds = np.count_nonzero((begun >= periods.steady.start) & (begun < periods.steady.stop))
            number = number - rounds * self.changing[:, finer.steady].sum(axis=1)
        updates, changes = np.maximum(number, 0).tolist()
        starts, ends = self.start_ps[periods.spans].T
        return Cycle(StepSource.REPEATED_CALL, "the eager loop", starts, ends, updates, changes)
