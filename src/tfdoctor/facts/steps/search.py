"""Finds training steps that nobody marked: what recurs, changes weights and takes gradients.

A loop inside a graph shows its iterations by the condition that runs before each; `for x in dataset`
in a graph, by the iterator that calls its body; a loop in Python, by the call of the function that
trains; an eager one, by its sequence of operations. Where several of these recur, the step is the
outermost with optimizer updates of its own. Where that does not decide, the steps are unavailable.
"""

from dataclasses import replace

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.steps.cycle import Cycle
from tfdoctor.facts.steps.eager_steps import eager_cycles
from tfdoctor.facts.steps.graph_cycles import graph_cycles
from tfdoctor.facts.steps.step import Step, steps_between
from tfdoctor.facts.steps.training_work import TrainingWork
from tfdoctor.terms.kinds import StepSource
from tfdoctor.trace import Trace
from tfdoctor.trace.names import TRAINING_CALLS

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
