"""Finds the steps of a loop that Python runs operation by operation, by its sequence of operations.

An operation that occurs once per step divides the sequence into equal periods; one that occurs twice
divides it into unequal halves. So a kind of operation is a step's boundary when the periods between its
occurrences are equal and each holds both a gradient and an update.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.cycle import CALL, MOSTLY, Cycle, from_each_to_next, holding
from tfdoctor.facts.steps.training_work import TrainingRole, TrainingWork, covering
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import Line, Trace
from tfdoctor.trace.names import ASSIGN, EAGER_CALL, EAGER_NEXT, GRADIENT, UPDATE

FEWEST_PERIODS = 4
"""Equal periods from which a sequence counts as periodic."""


def eager_cycles(trace: Trace) -> list[Cycle]:
    """Return the cycles of the thread that runs the most operations, the shortest first."""
    number = [int(is_named(line, _is_eager).sum()) for line in trace.host_lines]
    if not any(number):
        return []
    line = trace.host_lines[number.index(max(number))]
    sequence = OperationSequence.of(line, TrainingWork.gather(trace))
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
        cuts = np.flatnonzero(sequence.kind == kind)
        spans = from_each_to_next(cuts)
        trains = holding(sequence.gradients, spans) & holding(sequence.changes, spans)
        self.kind = kind
        self.spans = spans[trains]  # (n, 2) positions
        self.share = len(self.spans) / max(1, len(spans))
        self.steady, self.alike = (0, 0), 0.0  # one of the most common periods, and their share
        if len(self.spans):
            contents = [sequence.kind[start:end].tobytes() for start, end in self.spans]
            content, often = Counter(contents).most_common(1)[0]
            start, end = self.spans[contents.index(content)].tolist()
            self.steady, self.alike = (start, end), often / len(contents)

    def regular(self, name: str) -> bool:
        """Whether the periods are steps; a request for a batch may occur in evaluation as well."""
        all_train = self.share >= MOSTLY or EAGER_NEXT.fullmatch(name) is not None
        return len(self.spans) >= FEWEST_PERIODS and self.alike >= MOSTLY and all_train


class OperationSequence:
    """The operations of one thread in order: k of them, and which take gradients or change weights."""

    def __init__(self, line: Line, rows: NDArray[np.intp], inside: NDArray[np.bool_]) -> None:
        """Find the operations' roles by their types; ``inside`` marks calls that take gradients."""
        self.line = line
        self.kind = line.kind[rows]
        self.start_ps = line.start_ps[rows]
        names = [kind.name.removeprefix(EAGER_CALL) for kind in line.types]
        self.update = np.array([bool(UPDATE.fullmatch(name)) for name in names])[self.kind]
        self.assign = np.array([bool(ASSIGN.fullmatch(name)) for name in names])[self.kind]
        gradient = np.array([bool(GRADIENT.search(name)) for name in names])[self.kind]
        self.gradients = np.flatnonzero(gradient | inside)
        self.changes = np.flatnonzero(self.update | self.assign)

    @classmethod
    def of(cls, line: Line, work: TrainingWork) -> "OperationSequence":
        """Take a thread's operations; functions that it calls take gradients if their graphs do."""
        rows = np.flatnonzero(is_named(line, _is_eager))
        starts = line.start_ps[rows]
        gradients = work.start_ps[work.having(TrainingRole.GRADIENT)]
        held = covering(starts, starts + line.duration_ps[rows], gradients)
        inside = np.zeros(len(rows), dtype=bool)
        inside[held[held >= 0]] = True
        return cls(line, rows, inside)

    def levels(self) -> Iterator[Periods]:
        """Yield the ways to divide it into equal periods, the shortest first, one for each length."""
        regular = [
            periods
            for kind in np.unique(self.kind).tolist()
            if (periods := Periods(self, kind)).regular(self.line.types[kind].name)
        ]
        regular.sort(key=lambda periods: -len(periods.spans))
        while regular:
            often = len(regular[0].spans)
            same = [periods for periods in regular if often - len(periods.spans) <= 1]
            yield max(same, key=self._begins_well)
            regular = regular[len(same) :]

    def _begins_well(self, periods: Periods) -> tuple[bool, int]:
        """Prefer to begin with the batch, else with the operation after the last update."""
        begin = periods.steady[0]
        later = self.changes[self.changes >= begin]
        asks = EAGER_NEXT.fullmatch(self.line.types[periods.kind].name) is not None
        return asks, int(later[0]) - begin

    def cycle(self, periods: Periods, finer: Periods | None) -> Cycle:
        """Return the rounds, without the changes that belong to shorter periods inside them."""
        updates, changes = self._count(periods.steady)
        if finer is not None:
            inner = self._count(finer.steady)
            begin, end = periods.steady
            rounds = int(np.count_nonzero((finer.spans[:, 0] >= begin) & (finer.spans[:, 0] < end)))
            updates, changes = updates - rounds * inner[0], changes - rounds * inner[1]
        edges = self.start_ps[periods.spans]
        where = "the eager loop"
        return Cycle(CALL, where, edges[:, 0], edges[:, 1], max(0, updates), max(0, changes))

    def _count(self, span: tuple[int, int]) -> tuple[int, int]:
        """Return how many operations of a period update weights, and how many change any variable."""
        inside = slice(*span)
        changes = np.count_nonzero(self.update[inside] | self.assign[inside])
        return int(self.update[inside].sum()), int(changes)
