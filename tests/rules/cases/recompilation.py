"""The cases of recompilation: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.tracing.recompilation import check


def example(
    compiling: CompileTime = CompileTime(20, 20, 10, 250.0, 0.0, 346.0),
    host_ms: float = 268.0,
    program: Program | None = None,
    padding: SequencePadding | None = None,
) -> Verdict:
    """Every batch has another length, and XLA compiles in 20 of 20 steps."""
    return check(compiling, Breakdown.of(host=host_ms, device=4.0), program, padding)


sick = example


def healthy() -> Verdict:
    """XLA compiled before the traced steps."""
    return example(CompileTime(0, 20, 0), 0.5)
