"""The cases of kernel-compilation: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.kernel_compilation import check
from tfdoctor.rules.run.kernel_compilation.start_compiling import StartCompiling


def example(
    compiled: StartCompiling = StartCompiling(xla=True, xla_ms=35_000.0),
    total_ms: float = 120_000.0,
    tracing_ms: float = 38_000.0,
    building_ms: float = 3_000.0,
) -> Verdict:
    """XLA compiles a training step for 35 of 120 s."""
    times = {Phase.TRACING: tracing_ms, Phase.BUILDING: building_ms}
    return check(compiled, divided_run(total_ms, times))


sick = example


def healthy() -> Verdict:
    """XLA's programs are kept in a folder."""
    return example(StartCompiling(xla=True, xla_ms=16_000.0, kept=True))
