from tfdoctor.families.kit import *
from tfdoctor.rules.scale.oversubscribed_cores.worker_threads import VARIABLE, WorkerThreads

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    threads: float = limit(1.5)


def check(workers: WorkerThreads, cores: Cores, limits: Limits = Limits()) -> Verdict:
    """Compare the threads of all processes with the cores, and see whether these are busy."""
    each = workers.workers * workers.threads / cores.usable
    said = (
        f"{number(workers.workers)} processes have {with_noun(workers.threads, 'thread')} each "
        f"for {with_noun(cores.usable, 'core')}"
    )
    many = workers.workers != 1 and each >= limits.threads
    part = max(1, int(cores.usable / workers.workers)) if many else 1
    own = f"# in the shell: export {VARIABLE}={part}  # or bind the processes to cores"
    return judged(
        Measure("processes that train on this machine", count(workers.workers)),
        Measure("threads of all of them per core", count(each), count(limits.threads)),
        Measure("cores that the run kept busy", count(cores.busy)),
        healthy=f"{said}, of which {number(cores.busy)} were busy" if many else said,
        finding=f"{said}, and {number(cores.busy)} were busy",
        wrong=many and cores.crowded and cores.sampled,
        remedies=[Remedy("Give each process its part of the cores", own)],
        severity=Severity.NOTE,
    )
