"""debug-checks: both sides of its share, whose time counts, and what is no check."""

from tests.rules.kit import *
from tfdoctor.rules.execution.debug_checks import check
from tfdoctor.rules.execution.debug_checks.checking_operations import DebugChecks


def example(
    *rows: OperationTime, calls: float = 456.0, host_ms: float | None = None, step: Breakdown | None = None,
    everywhere: bool = True,
) -> Verdict:  # fmt: skip
    """The checks of all tensors take 3 of 13 ms of compute, and half of the host's time."""
    kind = "CheckNumericsV2"
    checking = rows or (took(kind, kind, 0.007 * calls, calls=calls),)
    starting_ms = 6.0 * calls / (calls + 500) if host_ms is None else host_ms
    at = script(5)
    checks = DebugChecks(checking, 0.0, starting_ms, everywhere=everywhere, at=at)
    return check(checks, step or Breakdown.of(host=6.0, device=checks.ms + 10.0))


def row(ms: float = 1.0, kind: str = "CheckNumericsV2", name: str = "") -> OperationTime:
    return OperationTime(name=name or kind, type=kind, ms=ms, at=script(9))


def checks(ms: float) -> Verdict:
    return example(row(ms), host_ms=0.0, step=Breakdown.of(host=50.0, device=50.0))


sick = example
healthy = described("A single assertion takes 7 microseconds.", example, calls=1.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a fiftieth of the step, and less"] = checks(2.0), checks(1.99)
    told["the time to start checks counts"] = example(row(1.0), host_ms=9.0)
    told["checks of the user's own are named by their line"] = example(row(9.0, "CheckNumerics"), everywhere=False)
    told["a step of unnamed work"] = applied(check, DebugChecks(()), UNNAMED_WORK, Breakdown.of(device=9.0))

    def found(kind: str, name: str) -> str:
        step, steps = Breakdown.of(device=1.0), even_steps(5, 1.0)
        rows = DebugChecks.measure(Operations((row(kind=kind, name=name),)), step, steps, recording(), None).rows
        return f"{name}: {'a check' if rows else 'none'}"

    told["checks"] = found("Assert", "Assert/Assert")
    told[...] = found("Equal", "model/assert_equal_1/Equal")
    told[...] = found("DebugNumericSummaryV2", "DebugNumericSummaryV2_3")
    told["clipping and scaling look for infinity"] = found("IsFinite", "clip_by_global_norm/IsFinite")
    told[...] = found("IsFinite", "loss_scale_optimizer/IsFinite")
    told["names that only sound like it"] = found("Mul", "assertive_layer/mul"), found("Equal", "accuracy/Equal")
