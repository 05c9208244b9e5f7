"""The cases of unvectorized-operation: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.unvectorized_operation import check
from tfdoctor.rules.operations.unvectorized_operation.fallback_loops import FallbackLoop, FallbackLoops

NAME = "loop_body/adjust_contrast"


RUNNING = GraphLoop(name=f"{NAME}/pfor/while", iterations=64.0, operations=0.0, ms=0.0)


IN_STEP = FallbackLoop(name=NAME, type="AdjustContrastv2", at=Location("train.py", 13), loop=RUNNING)


def example(
    *loops: FallbackLoop,
    scheduling_ms: float = 6.0,
    kind: DeviceKind = DeviceKind.CPU,
    pipeline: InputPipeline | None = None,
    step: Breakdown | None = None,
) -> Verdict:
    """The contrast of 64 images is changed one by one, for 6 of 10 ms."""
    found = FallbackLoops(loops or (IN_STEP,), scheduling_ms)
    return check(found, step or Breakdown.of(host=7.0, device=3.0), Device(kind, 1, 1), pipeline)


sick = example


def healthy() -> Verdict:
    """The loop takes 0.1 ms."""
    return example(scheduling_ms=0.1)
