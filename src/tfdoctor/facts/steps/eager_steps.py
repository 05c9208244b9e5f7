"""Finds the steps of a loop that Python runs operation by operation, by its sequence of operations.

An operation that occurs once per step divides the sequence into equal periods; one that occurs twice
divides it into unequal halves. So a kind of operation is a step's boundary when the periods between its
occurrences are equal and each holds both a gradient and an update.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from tfdoctor.facts.steps.cycle import CALL, MOSTLY, Cycle, from_each_to_next, holding
from tfdoctor.facts.steps.training_work import TrainingRole, TrainingWork, covering
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import Line, Trace
from tfdoctor.trace.names import ASSIGN, EAGER_CALL, EAGER_NEXT, GRADIENT, UPDATE

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
