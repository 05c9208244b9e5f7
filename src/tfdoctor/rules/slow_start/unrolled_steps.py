"""A traced function whose graph holds many training steps, because a loop in Python made one after another."""

from collections import Counter
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_traces import RunTraces
from tfdoctor.facts.run.operation_types import UPDATES
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.terms.verdict import Location


@dataclass(frozen=True, slots=True)
class UnrolledSteps:
    """The function, the first line inside of the loop, the steps in its graph, and the time of tracing it first."""

    name: str
    at: Location
    steps: int
    ms: float

    @classmethod
    def measure(cls, program: Program, traces: RunTraces) -> Self:
        """Count how often the graph of training writes a variable: once in each step.

        Raises:
            Unavailable: no function of the user's is known to have the operations of that graph.
        """
        operations = program.training
        lines = Counter(one.at for one in operations if one.at)
        for function in traces.functions:
            begins = function.defined
            own = [at for at in lines if begins and at.path == begins.path and at.line > begins.line]
            steps = _writes(operations)
            inside = [at for at in own if lines[at] >= steps]
            if inside and steps:
                first = min(inside, key=lambda at: at.line)
                return cls(function.name, first, steps, function.first_ms)
        raise Unavailable("no line of a function of the script made the operations of its graph")


def _writes(operations: tuple[Operation, ...]) -> int:
    """Return how often most variables are written in a graph: a function that is traced again has several."""
    writes = Counter(
        (one.graph, one.sources[0]) for one in operations if UPDATES.fullmatch(one.type) and one.sources
    )
    often = Counter(writes.values()).most_common(1)
    return often[0][0] if often else 0
