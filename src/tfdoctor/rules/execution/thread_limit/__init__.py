import numpy as np

from tfdoctor.facts.machine.cores import CROWDED
from tfdoctor.facts.operations.operations import LARGE
from tfdoctor.families.kit import *
from tfdoctor.rules.execution.thread_limit.setting import VARIABLE, LimitOrigin, ThreadSetting

__doc__, CODE = page(__file__)


def limited(setting: ThreadSetting) -> Healthy | None:
    """A setting allows fewer threads than there are cores."""
    none = f"No setting keeps operations from the {with_noun(setting.offered, 'core')}"
    return Healthy(summary=none) if setting.origin is None else None


PRECONDITIONS = (
    only_on(DeviceKind.CPU, Healthy(summary="The step computes on an accelerator, not on the host's threads")),
    limited,
    timed_steps,
)

# FLOPs of a call from which TensorFlow divides a matmul or convolution: about 0.1 ms on one core.
FLOP = 2_000_000.0
UNSET = f"# in the job's script: unset {VARIABLE}"
REMEDIES = {
    LimitOrigin.PROGRAM: Remedy(
        "Let operations use all cores of the job",
        CODE["all-cores"],
        changes="other programs of the machine get less of them",
    ),
    LimitOrigin.VARIABLE: Remedy("Set the variable to the cores of the job, or remove it", UNSET),
    LimitOrigin.QUOTA: Remedy("Raise the quota, if the cores are yours", CODE["quota"]),
    LimitOrigin.AFFINITY: Remedy("Widen the affinity, if the cores are yours", CODE["affinity"]),
}


class Limits(RuleLimits):
    share: float = share_limit(0.1)
    idle: float = limit(0.5)


class DivisibleWork(Record):
    """Matmuls and convolutions, and operations on large tensors, which TensorFlow would divide among threads.

    ``beside`` has the mean number of operations at work while an operation ran, by its name.
    """

    rows: tuple[OperationTime, ...]
    beside: dict[str, float]

    @classmethod
    def measure(cls, activity: Activity, operations: Operations, steps: Steps) -> Self:
        """Compare each operation's time with its share of the wall time, which operations at once divide."""
        work = activity.stages.get(Stage.DEVICE)
        if work is None or not len(work.label):
            raise Unavailable("the trace contains no operation")
        inside = steps.steady_spans.holds(work.start_ps)
        size, label = len(work.labels), work.label[inside]
        own = np.bincount(label, (work.end_ps - work.start_ps)[inside], size)
        wall = np.bincount(label, work.attributed_ps()[inside], size)
        beside = {ran: float(own[at] / wall[at]) for at, (_, _, ran) in enumerate(work.labels) if wall[at] > 0}
        sizes = ((row, row.flops, FLOP) if row.is_matrix else (row, row.nbytes, LARGE) for row in operations.rows)
        rows = tuple(row for row, size, least in sizes if (size or 0.0) >= least)
        return cls(rows, {row.name: max(beside.get(ran, 1.0) for ran in row.ran) for row in rows})

    def effects(self, limit: float, cores: float) -> tuple[Effect, ...]:
        """Return that each operation takes what cores beyond its present threads leave of its time: a ceiling."""
        scales = {row.name: min(1.0, limit * self.beside[row.name] / cores) for row in self.rows}
        return tuple(row.scaled(scales[row.name], Bound.AT_MOST) for row in self.rows if row.ms)


def check(
    setting: ThreadSetting, work: DivisibleWork, cores: Cores, breakdown: Breakdown, limits: Limits = Limits()
) -> Verdict:
    """Look for idle cores beside operations that would use them."""
    said = f"{setting.origin} allows {number(setting.limit)} of {with_noun(setting.offered, 'core')}"
    if not cores.sampled:
        return NotApplicable(reason=f"{said}, but the load of the cores was not sampled")
    if not cores.certain:
        others = f"other programs used {with_noun(cores.others, 'core')}: the limit may be there for them"
        return NotApplicable(reason=f"{said}, but {others}; record again on an otherwise idle machine")
    idle = max(0.0, setting.offered - cores.busy - cores.others)
    effects = work.effects(setting.limit, setting.offered)
    share = breakdown.share(sum((1.0 - one.scales) * one.of.value for one in effects if one.of))
    whole = setting.origin in {LimitOrigin.AFFINITY, LimitOrigin.QUOTA}
    why = ""  # the limit costs nothing
    if idle < limits.idle:
        why = f"with only {with_noun(idle, 'core')} idle"
    elif share < limits.share:
        why = f"but more threads would save at most {percent(share)} of the step"
    elif whole and cores.busy < CROWDED * setting.limit:
        why = f"of which the run used {number(cores.busy)}"
    return judged(
        Measure("threads or cores that the setting allows", count(setting.limit)),
        Measure("idle cores", count(idle), count(limits.idle)),
        Measure("operations that more threads would share", ms(sum(row.ms for row in work.rows))),
        Measure.share("largest share of the step that more threads save", share, limits.share),
        healthy=f"{said}, {why}",
        finding=f"{said}, with {with_noun(idle, 'core')} idle",
        wrong=not why,
        remedies=[replace(REMEDIES[setting.origin or LimitOrigin.PROGRAM], at=setting.at)],
        effects=effects,
    )
