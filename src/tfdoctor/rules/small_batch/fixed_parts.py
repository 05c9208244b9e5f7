"""Parts of a step that do not depend on the batch size."""

from dataclasses import dataclass, replace

from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.optimizer_work import is_small
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.compile_time import CompileTime
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Stage, StepWork


@dataclass(frozen=True, slots=True)
class FixedPart:
    """A part of the step that does not depend on the batch size, in ms per step."""

    stage: Stage
    work: str  # the effect's subject
    ms: float

    def effect(self, remaining: float) -> Effect:
        """Return that this share of the part remains, at least."""
        return Effect(self.stage, remaining, self.work, ms(self.ms), bound=Bound.AT_MOST)


def starting_operations(breakdown: Breakdown, overhead: PythonOverhead) -> tuple[FixedPart, ...]:
    """Return the host's time inside the call while the graph's threads work: they start operations."""
    rest = breakdown[Stage.HOST] - overhead.edges_ms - overhead.pauses_ms
    return (FixedPart(Stage.HOST, StepWork.SCHEDULING, max(0.0, rest)),)


def small_operations(operations: Operations | None, values: float, each_ms: float) -> list[FixedPart]:
    """Return the operations on small tensors, which take hardly longer on larger ones (see ``is_small``)."""
    return [
        FixedPart(Stage.DEVICE, row.name, row.ms)
        for row in (operations.rows if operations else ())
        if is_small(row, values, each_ms)
    ]


def without_conversions(overhead: PythonOverhead, conversions: Conversions | None) -> PythonOverhead:
    """Leave out the conversion of the arrays that a call is given: one call of several steps is given all."""
    given_ms = conversions.host_ms if conversions else 0.0
    return replace(overhead, edges_ms=max(0.0, overhead.edges_ms - given_ms))


def call_on_cpu(overhead: PythonOverhead) -> tuple[FixedPart, ...]:
    """Return Python's overhead; pauses and the time between calls no more than inside them.

    The rest is the loop's work, or an operation's that the trace does not show.
    """
    pauses = min(overhead.pauses_ms, overhead.edges_ms)
    return (
        FixedPart(Stage.HOST, StepWork.STEP_ENTRY, overhead.edges_ms + pauses),
        FixedPart(Stage.BETWEEN, StepWork.STEP_ENTRY, min(overhead.between_ms, overhead.edges_ms)),
    )


def wait_of_accelerator(breakdown: Breakdown, compiling: CompileTime | None) -> tuple[FixedPart, ...]:
    """Return the device's wait for the host, without compiling, which recompilation reports."""
    compile_ms = compiling.host_ms if compiling else 0.0
    wait_ms = max(0.0, breakdown[Stage.HOST] - compile_ms)
    return (FixedPart(Stage.HOST, StepWork.STEP_ENTRY, wait_ms),)
