"""The cases of oversubscribed-cores: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.scale.oversubscribed_cores import check
from tfdoctor.rules.scale.oversubscribed_cores.worker_threads import WorkerThreads


def example(
    workers: WorkerThreads = WorkerThreads(8, 64), cores: Cores | Unavailable = Cores(64.0, busy=60.0)
) -> Verdict:
    """Eight processes have 64 threads each on 64 busy cores."""
    return check(workers, cores)


sick = example


def healthy() -> Verdict:
    """Eight processes have eight threads each."""
    return example(WorkerThreads(8, 8, given=True))
