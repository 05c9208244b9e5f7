from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.debug_checks.checking_operations import DebugChecks

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
PRECONDITIONS = (found(DebugChecks, lambda checks: checks.rows, "No operation of the step only checks values"),)
BY_HAND = "whether the checks in the training function are still needed is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    share: float = share_limit(0.02)


def check(checks: DebugChecks, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the time of the checks and of the host for them."""
    taken = checks.ms + checks.host_ms
    share = taken / breakdown.step_ms if breakdown.step_ms else 0.0
    number = counted(round(checks.calls), "operation")
    summary = f"{number} that only check values take {milliseconds(taken)}"
    evidence = (
        Measure.share("share of the step in checks of values", share, limits.share),
        Measure("operations per step that check values", count(checks.calls)),
        Measure("time in operations that check values, per step", ms(checks.ms)),
        Measure("time of Python in checks, per step", ms(checks.python_ms)),
        Measure("time of the host to start checks in graphs, per step", ms(checks.starting_ms)),
    )
    if share < limits.share:
        return Healthy(summary=f"{summary} of each step", evidence=evidence)
    at = next((row.at for row in checks.rows if row.at), None)
    remedy = Remedy("Remove the checks from the training function", CODE["rarely"], at)
    if checks.everywhere:
        action = "Remove tf.debugging.enable_check_numerics()"
        remedy = Remedy(action, CODE["flag"], checks.at, "debugging-off")
    effects = [row.scaled(0.0) for row in checks.rows if row.ms]
    if checks.host_ms:
        effects.append(Effect(Stage.HOST, 0.0, StepWork.CHECKS, ms(checks.host_ms)))
    return Finding(
        summary=f"{summary} per step ({percent(share)})",
        evidence=evidence,
        remedies=(remedy,),
        effects=tuple(effects),
    )
