"""The cases of growing-memory: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.growing_memory import check

RESIDENT = Trend(
    what=Grows.RESIDENT, first=1.1e9, last=3.5e9, slope=2e7, low=1.9e7, high=2.1e7, steady=True, points=120
)  # fmt: skip

PHASES = RunPhases(total_ms=130e3, times={Phase.STEPS: 120e3, Phase.IMPORTS: 10e3}, once_ms=10e3)


def example(  # noqa: PLR0913 - what the severity depends on
    resident: Trend = RESIDENT,
    *counts: Trend,
    limit: float | None = 32e9,
    planned_s: float = 0.0,
    ran_out: bool = False,
    phases: RunPhases = PHASES,
    calls: RunCalls | None = None,
    program: Program | None = None,
    seconds: float = 120.0,
    reserved: Trend | None = None,
    kept: KeptResults | None = None,
) -> Verdict:
    """Judge memory that grows by 20 MB a second, with the counts that grow along."""
    memory = FillingMemory(resident, limit, planned_s, ran_out, reserved)
    growth = RunGrowth((resident, *counts), seconds)
    return check(phases, MemoryTrends((memory,)), growth, calls, program, kept)


def sick() -> Verdict:
    """Memory grows by 20 MB a second, and live tensors with it, which a list in the loop keeps."""
    counts = replace(RESIDENT, what=Grows.OBJECTS, name="EagerTensor", first=2_000, last=62_000)
    at, value = Location("train.py", 47), "(loss, outputs)"
    kept = KeptResult(at, "history", value, KeptValue.RESULT, each=True)
    return example(RESIDENT, counts, kept=KeptResults((kept,)))


def healthy() -> Verdict:
    """A list of losses grows by 3 MB in two minutes."""
    return example(replace(RESIDENT, last=1.103e9, slope=25e3, low=2e4, high=3e4))
