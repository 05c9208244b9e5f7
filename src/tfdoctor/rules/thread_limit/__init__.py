from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.machine.cores import CROWDED
from tfdoctor.rules.thread_limit.divisible_work import DivisibleWork
from tfdoctor.rules.thread_limit.setting import LimitOrigin, ThreadSetting

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(
        *(DeviceKind.GPU, DeviceKind.TPU),
        verdict=Healthy(summary="The step computes on an accelerator, not on the host's threads"),
    ),
    timed_steps,
)
BY_HAND = "the limit may be meant for other programs, and often stands outside of the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """When a limit on threads is a loss."""

    share: float = share_limit(
        0.1, "Smallest share of the step that more threads can save at most; they need more to start"
    )
    idle: float = limit(
        0.5, "Smallest number of cores that must be idle meanwhile; as other programs may use without disturbing"
    )


def check(
    setting: ThreadSetting, work: DivisibleWork, cores: Cores, breakdown: Breakdown, limits: Limits = Limits()
) -> Verdict:
    """Look for idle cores beside operations that would use them."""
    if setting.origin is None:
        return Healthy(summary=f"No setting keeps operations from the {number(setting.offered)} cores")
    if not cores.certain:
        return NotApplicable(reason=_disturbed(setting, cores))
    idle = max(0.0, setting.offered - cores.busy - cores.others)
    effects = work.effects(setting.limit, setting.offered)
    share = breakdown.share(sum(_gain(effect) for effect in effects))
    evidence = (
        *_evidence(setting, work, idle, limits),
        Measure.share("largest share of the step that more threads save", share, limits.share),
    )
    if why := _why_healthy(setting, cores, idle, share, limits):
        return Healthy(summary=why, evidence=evidence)
    return Finding(
        summary=f"{_said(setting)}, and {number(idle)} cores were idle",
        evidence=evidence,
        remedies=(_remedy(setting),),
        effects=effects,
    )


def _evidence(setting: ThreadSetting, work: DivisibleWork, idle: float, limits: Limits) -> tuple[Measure, ...]:
    return (
        Measure("threads or cores that the setting allows", count(setting.limit)),
        Measure("idle cores", count(idle), count(limits.idle)),
        Measure("operations that more threads would share", ms(sum(row.ms for row in work.rows))),
    )


def _gain(effect: Effect) -> float:
    return (1.0 - effect.scales) * effect.of.value if effect.of else 0.0


def _said(setting: ThreadSetting) -> str:
    return f"{setting.origin} allows {number(setting.limit)} of {number(setting.offered)} cores"


def _disturbed(setting: ThreadSetting, cores: Cores) -> str:
    if not cores.sampled:
        return f"{_said(setting)}, but the load of the cores was not sampled"
    return (
        f"{_said(setting)}, but other programs used {number(cores.others)} cores: the limit may be there for them; "
        "record again on an otherwise idle machine"
    )


def _why_healthy(setting: ThreadSetting, cores: Cores, idle: float, share: float, limits: Limits) -> str:
    """Return why the limit costs nothing; "" where it does."""
    if idle < limits.idle:
        return f"{_said(setting)}, but only {number(idle)} cores were idle"
    if share < limits.share:
        return f"{_said(setting)}, but more threads would save at most {percent(share)} of the step"
    whole = setting.origin in {LimitOrigin.AFFINITY, LimitOrigin.QUOTA}
    if whole and cores.busy < CROWDED * setting.limit:
        return f"{_said(setting)}, of which the run used {number(cores.busy)}"
    return ""


def _remedy(setting: ThreadSetting) -> Remedy:
    if setting.origin is LimitOrigin.PROGRAM:
        return Remedy(
            "Let operations use all cores of the job",
            CODE["all-cores"],
            setting.at,
            "all-cores",
            changes="other programs of the machine get less of them",
        )
    if setting.origin is LimitOrigin.VARIABLE:
        return Remedy("Set the variable to the cores of the job, or remove it", UNSET)
    if setting.origin is LimitOrigin.QUOTA:
        return Remedy("Raise the quota, if the cores are yours", CODE["quota"])
    return Remedy("Widen the affinity, if the cores are yours", CODE["affinity"])


UNSET = "# in the job's script: unset TF_NUM_INTRAOP_THREADS"
