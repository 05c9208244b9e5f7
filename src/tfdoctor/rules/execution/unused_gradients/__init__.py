from tfdoctor.families.kit import *
from tfdoctor.rules.execution.unused_gradients.unused_work import UnusedWork

__doc__, CODE = page(__file__)


TOO_FEW = "fewer than six calls came before the traced steps; record with a higher --warmup"
FOLLOW = "Have the tape follow only what is trained"
UNREAD = "If the script does not read these gradients with NumPy, have the tape follow only what is trained"


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(unused: UnusedWork, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the work for unused gradients with the step."""
    total_ms = unused.kernels_ms + unused.host_ms
    share = breakdown.share(total_ms) if total_ms else 0.0
    if share < limits.share and unused.unfollowed:
        at, too_few = unused.unfollowed
        where = f" at {location(at)}" if at else ""
        why = TOO_FEW if too_few else "the recorder saw no use of them before the traced steps"
        return NotApplicable(reason=f"unknown whether the gradients taken{where} are used, because {why}")
    if not unused.calls and share < limits.share:
        return Healthy(summary="No traced step takes gradients outside of a tf.function")
    most = unused.most
    if not share or not most:
        return Healthy(summary="Each eager gradient that is computed is used")
    use = "no operation uses" if unused.returned else "the script does not ask for"
    variables = counted(most.unused, "variable")
    types = ((kind, count(calls), ms(time_ms)) for kind, calls, time_ms in most.types)
    times = {Stage.DEVICE: unused.kernels_ms, Stage.HOST: unused.host_ms}
    bound = Bound.AT_MOST if unused.returned else Bound.EXPECTED
    return judged(
        Measure.share("share of the step for unused gradients", share, limits.share),
        Measure("variables that the tape follows", count(most.variables)),
        Measure("variables whose gradients no operation uses", count(most.unused)),
        Measure("unused gradients that tape.gradient returned", count(unused.returned)),
        Measure("operations that only they need, per step", count(unused.operations)),
        Measure("time in these operations' kernels per step", ms(unused.kernels_ms)),
        Measure("time to start these operations per step", ms(unused.host_ms)),
        Table(("operation for unused gradients", "calls", "time in a step before tracing"), tuple(types)),
        Table(("variable whose gradient no operation uses",), tuple((name,) for name in most.names)),
        healthy=f"Eager steps compute gradients of {variables} that {use}: {percent(share)} of the step",
        remedies=(Remedy(UNREAD if unused.returned else FOLLOW, CODE["before"], unused.at),),
        effects=Effect.of_stages(times, StepWork.UNUSED_GRADIENTS, bound=bound),
    )
