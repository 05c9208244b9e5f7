"""device-placement: both sides of its share, and what to do by the kind of operation."""

from tests.rules.kit import *
from tfdoctor.rules.execution.device_placement import Limits, check


def example(
    kind: str = "EagerPyFunc", copies_ms: float = 0.4, waiting_ms: float = 3.6, step_ms: float = 20.0
) -> Verdict:
    """A py_function in the model takes 4 of 20 ms, with its copies."""
    row = Detour("model/smooth/EagerPyFunc", kind, 1.0, copies_ms, waiting_ms, script(9))
    step = Breakdown.of(transfer=copies_ms, host=waiting_ms, device=step_ms - copies_ms - waiting_ms)
    return check(Detours((row,)), step)


sick = example
healthy = described("All operations of the step run on the GPU.", check, Detours(()), Breakdown.of(device=16.0))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = [
        example(copies_ms=0.0, waiting_ms=share, step_ms=100.0)
        for share in (101 * Limits().share, 99 * Limits().share)
    ]
    told["strings, and what has a kernel for GPUs"] = example("StringSplit"), example("Where")
