from tfdoctor.families.kit import *
from tfdoctor.rules.execution.debug_checks.checking_operations import DebugChecks

__doc__, CODE = page(__file__)
PRECONDITIONS = (found(DebugChecks, "No operation of the step only checks values"),)


class Limits(RuleLimits):
    share: float = share_limit(0.02)


def check(checks: DebugChecks, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the time of the checks and of the host for them."""
    host_ms = checks.python_ms + checks.starting_ms
    taken = checks.ms + host_ms
    share = breakdown.share(taken)
    which = "operation that only checks values takes", "operations that only check values take"
    summary = f"{counted(round(checks.calls), *which)} {milliseconds(taken)}"
    at = next((row.at for row in checks.rows if row.at), None)
    remedy = Remedy("Remove the checks from the training function", CODE["rarely"], at)
    if checks.everywhere:
        remedy = Remedy("Remove tf.debugging.enable_check_numerics()", CODE["flag"], checks.at)
    return judged(
        Measure.share("share of the step in checks of values", share, limits.share),
        Measure("operations per step that check values", count(checks.calls)),
        Measure("time in operations that check values, per step", ms(checks.ms)),
        Measure("time of Python in checks, per step", ms(checks.python_ms)),
        Measure("time of the host to start checks in graphs, per step", ms(checks.starting_ms)),
        healthy=f"{summary} of each step",
        finding=f"{summary} per step ({percent(share)})",
        remedies=(remedy,),
        effects=(
            *(row.scaled(0.0) for row in checks.rows if row.ms),
            *Effect.of_stages({Stage.HOST: host_ms}, StepWork.CHECKS, bound=Bound.EXPECTED),
        ),
    )
