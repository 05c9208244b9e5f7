"""Finds training steps that nobody marked: what recurs, changes weights and takes gradients.

A loop inside a graph shows its iterations by the condition that runs before each; `for x in dataset`
in a graph, by the iterator that calls its body; a loop in Python, by the call of the function that
trains; an eager one, by its sequence of operations. Where several of these recur, the step is the
outermost with optimizer updates of its own. Where that does not decide, the steps are unavailable.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.steps.graph_cycles import graph_cycles
from tfdoctor.facts.steps.step import Step, steps_between
from tfdoctor.facts.steps.training_work import (
    CALL,
    MOSTLY,
    Cycle,
    TrainingRole,
    TrainingWork,
    covering,
    from_each_to_next,
    holding,
)
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.terms.kinds import StepSource
from tfdoctor.trace import Line, Trace
from tfdoctor.trace.names import ASSIGN, EAGER_CALL, EAGER_NEXT, GRADIENT, TRAINING_CALLS, UPDATE

FEWEST_PERIODS = 4  # Equal periods from which a sequence counts as periodic


def eager_cycles(trace: Trace) -> list[Cycle]:
    """Return the cycles of the thread that runs the most operations, the shortest first."""
    number = [int(is_named(line, _is_eager).sum()) for line in trace.host_lines]
    if not any(number):
        return []
    sequence = OperationSequence(trace.host_lines[number.index(max(number))], TrainingWork.gather(trace))
    finer: Periods | None = None
    cycles = []
    for periods in sequence.levels():
        cycle = sequence.cycle(periods, finer)
        if cycle.activities:
            cycles.append(cycle)
            finer = finer or periods
    return cycles


def _is_eager(name: str) -> bool:
    return name.startswith(EAGER_CALL)


class Periods:
    """A sequence divided before each operation of one kind; only the n whole periods that train."""

    def __init__(self, sequence: "OperationSequence", kind: int) -> None:
        """Divide the sequence before each operation of this kind."""
        spans = from_each_to_next(np.flatnonzero(sequence.kind == kind))
        trains = holding(sequence.gradients, spans) & holding(sequence.changes, spans)
        self.spans = spans[trains]  # (n, 2) positions
        self.share = len(self.spans) / max(1, len(spans))
        self.asks = EAGER_NEXT.fullmatch(sequence.line.types[kind].name) is not None  # for a batch
        self.steady, self.alike = (0, 0), 0.0  # one of the most common periods, and their share
        if len(self.spans):
            contents = [sequence.kind[start:end].tobytes() for start, end in self.spans]
            content, often = Counter(contents).most_common(1)[0]
            start, end = self.spans[contents.index(content)].tolist()
            self.steady, self.alike = (start, end), often / len(contents)

    @property
    def regular(self) -> bool:
        """Whether the periods are steps; a request for a batch may occur in evaluation as well."""
        all_train = self.share >= MOSTLY or self.asks
        return len(self.spans) >= FEWEST_PERIODS and self.alike >= MOSTLY and all_train


class OperationSequence:
    """The operations of one thread in order, and which take gradients or change weights."""

    def __init__(self, line: Line, work: TrainingWork) -> None:
        """Find the roles by the types; functions that the thread calls take gradients if their graphs do."""
        rows = np.flatnonzero(is_named(line, _is_eager))
        self.line, self.kind, self.start_ps = line, line.kind[rows], line.start_ps[rows]
        names = [kind.name.removeprefix(EAGER_CALL) for kind in line.types]
        self.update = np.array([bool(UPDATE.fullmatch(name)) for name in names])[self.kind]
        self.assign = np.array([bool(ASSIGN.fullmatch(name)) for name in names])[self.kind]
        gradient = np.array([bool(GRADIENT.search(name)) for name in names])[self.kind]
        inside = work.start_ps[work.having(TrainingRole.GRADIENT)]
        held = covering(self.start_ps, self.start_ps + line.duration_ps[rows], inside)
        gradient[held[held >= 0]] = True
        self.gradients = np.flatnonzero(gradient)
        self.changes = np.flatnonzero(self.update | self.assign)

    def levels(self) -> Iterator[Periods]:
        """Yield the ways to divide it into equal periods, the shortest first, one for each length."""
        divided = (Periods(self, kind) for kind in np.unique(self.kind).tolist())
        regular = sorted((one for one in divided if one.regular), key=lambda one: -len(one.spans))
        while regular:
            often = len(regular[0].spans)
            same = [periods for periods in regular if often - len(periods.spans) <= 1]
            # A step begins with the batch, else with the operation after the last update.
            yield max(
                same, key=lambda one: (one.asks, self.changes[self.changes >= one.steady[0]][0] - one.steady[0])
            )
            regular = regular[len(same) :]

    def cycle(self, periods: Periods, finer: Periods | None) -> Cycle:
        """Return the rounds, without the changes that belong to shorter periods inside them."""
        updates, changes = self._count(periods.steady)
        if finer is not None:
            inner = self._count(finer.steady)
            begin, end = periods.steady
            rounds = int(np.count_nonzero((finer.spans[:, 0] >= begin) & (finer.spans[:, 0] < end)))
            updates, changes = updates - rounds * inner[0], changes - rounds * inner[1]
        starts, ends = self.start_ps[periods.spans].T
        return Cycle(CALL, "the eager loop", starts, ends, max(0, updates), max(0, changes))

    def _count(self, span: tuple[int, int]) -> tuple[int, int]:
        """Return how many operations of a period update weights, and how many change any variable."""
        changes = self.update[slice(*span)] | self.assign[slice(*span)]
        return int(self.update[slice(*span)].sum()), int(changes.sum())


FEWEST = 4  # Whole rounds from which a cycle counts
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
    for other in others:
        if first.contains(other) or other.contains(first):
            raise _undecided(first, other, "one inside the other, and both may run the optimizer")
    alternating = [other for other in others if first.keeps_step_with(other)]
    for other in others:
        if other not in alternating and first.total_ps < OUTWEIGHS * other.total_ps:
            raise _undecided(first, other, "with similar total times")
    # A round of alternating cycles lasts from the first one's start to the last one's end.
    joined = [first, *alternating]
    begins = min(joined, key=lambda cycle: int(cycle.starts_ps[0]))
    ends = begins.ends_ps.copy()
    for other in joined:
        place = np.searchsorted(begins.starts_ps, other.starts_ps, side="right") - 1
        np.maximum.at(ends, place, other.ends_ps)
    where = " with ".join([begins.where, *(cycle.where for cycle in joined if cycle is not begins)])
    return replace(begins, where=where, ends_ps=ends)


def _undecided(cycle: Cycle, other: Cycle, why: str) -> Unavailable:
    return Unavailable(
        f"{cycle.where} and {other.where} both train, {why}, so the steps are ambiguous",
        "record a window with only one of them, or mark the steps with "
        "`tf.profiler.experimental.Trace('train', step_num=n, _r=1)`",
    )


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
