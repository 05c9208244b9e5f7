"""A setting leaves cores idle that operations would use.

## What it checks

Whether something limits the threads that share one operation to fewer than the cores: the program
(`tf.config.threading`), the environment variable `TF_NUM_INTRAOP_THREADS`, the process's CPU affinity, or a control
group's quota; which of the step's operations are large enough for more threads, and how many operations ran at the
same time; and whether cores were idle while the steps were traced.

## Why it matters

TensorFlow divides large matmuls, convolutions and elementwise operations among the threads of its *intra-op* pool.
With one thread, an operation uses one core, however many are there. Job scripts often set it for a scheduler, by a
variable whose default is 1.

## How to fix

Remove the setting, or set it to the cores that the job has got (`len(os.sched_getaffinity(0))`). Raise an affinity
(`taskset`, `srun --cpus-per-task`) or a quota (`docker run --cpus`, Kubernetes' `limits.cpu`) only where the cores
are yours. `OMP_NUM_THREADS` does not limit TensorFlow's own operations in the packages for pip, which do not use
OpenMP.

## Holds for

CPU runs recorded with `tfdoctor profile`. Where other programs use the cores the rule is not checked: the limit may
be there for them. The saving is a ceiling, because memory limits large elementwise operations. Sessions of
TensorFlow 1 have settings of their own, which are not recorded.

## Sources

- [tf.config.threading.set_intra_op_parallelism_threads](https://www.tensorflow.org/api_docs/python/tf/config/threading/set_intra_op_parallelism_threads)
- [TensorFlow, local_device.cc: which setting counts](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/common_runtime/local_device.cc)
- [sched_setaffinity(2)](https://man7.org/linux/man-pages/man2/sched_setaffinity.2.html)
- [Control Group v2: CPU](https://docs.kernel.org/admin-guide/cgroup-v2.html)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import not_on, timed_steps
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.machine.cores import CROWDED, Cores
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.thread_limit.divisible_work import DivisibleWork
from tfdoctor.rules.thread_limit.setting import LimitOrigin, ThreadSetting
from tfdoctor.terms.humanize import number, percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Verdict

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
            ALL_CORES,
            setting.at,
            "all-cores",
            changes="other programs of the machine get less of them",
        )
    if setting.origin is LimitOrigin.VARIABLE:
        return Remedy("Set the variable to the cores of the job, or remove it", UNSET)
    if setting.origin is LimitOrigin.QUOTA:
        return Remedy("Raise the quota, if the cores are yours", QUOTA)
    return Remedy("Widen the affinity, if the cores are yours", AFFINITY)


ALL_CORES = """\
threads = len(os.sched_getaffinity(0))  # or leave the call out: that is what TensorFlow takes
tf.config.threading.set_intra_op_parallelism_threads(threads)"""

UNSET = "# in the job's script: unset TF_NUM_INTRAOP_THREADS"

QUOTA = """\
# docker run --cpus=8 ...
# Kubernetes: resources: {limits: {cpu: "8"}, requests: {cpu: "8"}}"""

AFFINITY = """\
# taskset --cpu-list 0-7 python train.py
# Slurm: srun --cpus-per-task=8 python train.py"""


MATMUL = OperationTime(name="dense/MatMul", type="MatMul", ms=20.0, at=Location("train.py", 14), flops=7e8)


def example(
    setting: ThreadSetting = ThreadSetting(1.0, 2.0, LimitOrigin.PROGRAM, Location("train.py", 8)),
    work: DivisibleWork = DivisibleWork((MATMUL,), {MATMUL.name: 1.2}),
    cores: Cores = Cores(2.0, 1.2),
    step: Breakdown | None = None,
) -> Verdict:
    """One thread for each operation, on two cores."""
    return check(setting, work, cores, step or Breakdown.of(device=32.0, host=4.0))


sick = example


def healthy() -> Verdict:
    """The threads that TensorFlow takes by itself."""
    return example(ThreadSetting(2.0, 2.0))
