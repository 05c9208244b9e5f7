"""A traced function whose graph holds many training steps, because a loop in Python made one after another."""

from collections import Counter
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_calls import RunTraces
from tfdoctor.facts.run.operation_types import UPDATES
from tfdoctor.facts.run.program import Program
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
        """Count how often the graph of training writes most variables: once in each step.

        Raises:
            Unavailable: no function of the user's is known to have the operations of that graph.
        """
        operations = program.training
        lines = Counter(one.at for one in operations if one.at)
        # A function that is traced again has several graphs.
        written = ((one.graph, one.sources[0]) for one in operations if UPDATES.fullmatch(one.type) and one.sources)
        steps = max(Counter(Counter(written).values()).items(), key=lambda one: one[1], default=(0, 0))[0]
        for function in traces.functions if steps else ():
            begins = function.defined
            own = [at for at in lines if begins and at.path == begins.path and at.line > begins.line]
            if inside := [at for at in own if lines[at] >= steps]:
                return cls(function.name, min(inside, key=lambda at: at.line), steps, function.first_ms)
        raise Unavailable("no line of a function of the script made the operations of its graph")
