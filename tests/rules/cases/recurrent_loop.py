"""The cases of recurrent-loop: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.recurrent_loop import check


def example(
    *loops: GraphLoop,
    operations_ms: float = 0.5,
    scheduling_ms: float = 2.9,
    waiting_ms: float = 0.0,
    breakdown: Breakdown | None = None,
    program: Program | None = None,
    overhead: PythonOverhead | None = None,
) -> Verdict:
    """An LSTM over 32 time steps with 2 examples: 2.9 of 5.1 ms start operations."""
    lstm = GraphLoop("sequential/lstm/while", 32.0, 160.0, operations_ms)
    around = Breakdown.of(host=scheduling_ms + 0.9, device=operations_ms + 0.5)
    work = LoopWork(loops or (lstm,), scheduling_ms, waiting_ms)
    return check(work, breakdown or around, program, overhead)


sick = example


def healthy() -> Verdict:
    """The same LSTM with 256 units and 256 examples: its matmuls take most of the step."""
    return example(operations_ms=30.0, scheduling_ms=3.5)
