from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.unused_gradients.unused_work import Unfollowed, UnusedWork

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
BY_HAND = "which part of the network is not trained is for you to say"


@dataclass(frozen=True, slots=True)
class Limits:
    """When such work is worth a change."""

    share: float = share_limit(
        0.05, "Smallest share of the step in gradients that nobody uses; as in zero-learning-rate"
    )


def check(unused: UnusedWork, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Compare the work for unused gradients with the step."""
    total_ms = unused.kernels_ms + unused.host_ms
    share = breakdown.share(total_ms) if total_ms else 0.0
    if share < limits.share:
        return _below(unused, share, limits)
    return Finding(
        summary=_summary(unused, share),
        evidence=tuple(_evidence(unused, share, limits)),
        remedies=(Remedy(UNREAD if unused.returned else FOLLOW, CODE["before"], unused.at),),
        effects=tuple(_effects(unused)),
    )


def _below(unused: UnusedWork, share: float, limits: Limits) -> Verdict:
    """Return what is known without a finding."""
    if unused.unfollowed:
        return NotApplicable(reason=_unknown(unused.unfollowed))
    if not unused.calls:
        return Healthy(summary="No traced step takes gradients outside of a tf.function")
    if not share:
        return Healthy(summary="Each eager gradient that is computed is used")
    evidence = tuple(_evidence(unused, share, limits))
    return Healthy(summary=_summary(unused, share), evidence=evidence)


def _summary(unused: UnusedWork, share: float) -> str:
    variables = counted(unused.unused, "variable")
    use = "no operation uses" if unused.returned else "the script does not ask for"
    return f"Eager steps compute gradients of {variables} that {use}: {percent(share)} of the step"


def _unknown(line: Unfollowed) -> str:
    where = f" at {location(line.at)}" if line.at else ""
    why = TOO_FEW if line.too_few else "the recorder saw no use of them before the traced steps"
    return f"unknown whether the gradients taken{where} are used, because {why}"


TOO_FEW = "fewer than six calls came before the traced steps; record with a higher --warmup"

FOLLOW = "Have the tape follow only what is trained"

UNREAD = "If the script does not read these gradients with NumPy, have the tape follow only what is trained"


def _effects(unused: UnusedWork) -> Iterator[Effect]:
    bound = Bound.AT_MOST if unused.returned else Bound.EXPECTED
    for stage, time_ms in ((Stage.DEVICE, unused.kernels_ms), (Stage.HOST, unused.host_ms)):
        if time_ms:
            yield Effect(stage, 0.0, StepWork.UNUSED_GRADIENTS, ms(time_ms), bound=bound)


def _evidence(unused: UnusedWork, share: float, limits: Limits) -> Iterator[Evidence]:
    yield Measure.share("share of the step for unused gradients", share, limits.share)
    yield Measure("variables that the tape follows", count(unused.variables))
    yield Measure("variables whose gradients no operation uses", count(unused.unused))
    yield Measure("unused gradients that tape.gradient returned", count(unused.returned))
    yield Measure("operations that only they need, per step", count(unused.operations))
    yield Measure("time in these operations' kernels per step", ms(unused.kernels_ms))
    yield Measure("time to start these operations per step", ms(unused.host_ms))
    yield Table(
        ("operation for unused gradients", "calls", "time in a step before tracing"),
        tuple((kind, count(calls), ms(time_ms)) for kind, calls, time_ms in unused.types),
    )
    yield Table(("variable whose gradient no operation uses",), tuple((name,) for name in unused.names))
