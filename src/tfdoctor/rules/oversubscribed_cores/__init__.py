from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.oversubscribed_cores.worker_threads import WorkerThreads

__doc__, CODE = page(__file__)

TOPIC = Topic.SCALE
SINCE = "0.2.0"
BY_HAND = "how the cores are divided among the processes is decided by what starts them"


@dataclass(frozen=True, slots=True)
class Limits:
    """When the threads are too many."""

    threads: float = limit(
        1.5, "Smallest number of threads per core that is reported; some more than cores hide each other's waits"
    )


def check(workers: WorkerThreads, cores: Cores | Unavailable, limits: Limits = Limits()) -> Verdict:
    """Compare the threads of all processes with the cores, and see whether these are busy."""
    if isinstance(cores, Unavailable):
        return NotApplicable(reason=str(cores))
    each = workers.total / cores.usable
    said = (
        f"{number(workers.workers)} processes have {number(workers.threads)} threads each "
        f"for {number(cores.usable)} cores"
    )
    evidence = (
        Measure("processes that train on this machine", count(workers.workers)),
        Measure("threads of all of them per core", count(each), count(limits.threads)),
        Measure("cores that the run kept busy", count(cores.busy)),
    )
    if workers.workers == 1 or each < limits.threads:
        return Healthy(summary=said, evidence=evidence)
    if not cores.crowded or not cores.sampled:
        summary = f"{said}, of which {number(cores.busy)} were busy"
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=f"{said}, and {number(cores.busy)} were busy",
        evidence=evidence,
        remedies=(_remedy(workers, cores),),
        severity=Severity.NOTE,
    )


def _remedy(workers: WorkerThreads, cores: Cores) -> Remedy:
    part = max(1, int(cores.usable / workers.workers))
    action = "Give each process its part of the cores"
    return Remedy(action, f"# in the shell: export {VARIABLE}={part}  # or bind the processes to cores")


VARIABLE = "TF_NUM_INTRAOP_THREADS"
