"""oversubscribed-cores: threads of several processes, and whether the cores are busy with them."""

from tests.rules.kit import *
from tfdoctor.rules.scale.oversubscribed_cores import check
from tfdoctor.rules.scale.oversubscribed_cores.worker_threads import WorkerThreads


def example(workers: WorkerThreads = WorkerThreads(8, 64), cores: Cores = Cores(64.0, busy=60.0)) -> Verdict:
    """Eight processes have 64 threads each on 64 busy cores."""
    return check(workers, cores)


def measured(busy: tuple[float, ...] = (180.0, 170.0, 5.0), *, size: int = 2, **settings: Any) -> WorkerThreads:
    """A job of some workers, whose processes use so much of a core, in percent."""
    shares = {str(pid): pct for pid, pct in enumerate(busy)}
    samples = [{"unix_ns": at, "host": {"processes_pct": shares}} for at in (1, 2)]
    described = manifest(worker=WorkerRank("worker-0", 0, size, 0))
    made = replace(recording(None, samples, manifest=described), workers=(Path("a"), Path("b"))[:size])
    return WorkerThreads.measure(made, Program(settings=RunSettings(**settings)))


sick = example
healthy = described("Eight processes have eight threads each.", example, WorkerThreads(8, 8))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["1.5 threads per core, and less"] = [example(WorkerThreads(8, threads)) for threads in (12, 11)]
    told["trap: eight processes on GPUs leave most cores idle"] = example(cores=Cores(64.0, busy=48.0))
    told[...] = example(cores=Cores(64.0, busy=47.0))
    told["cores of unknown load"] = example(cores=Cores(64.0, busy=60.0, sampled=False))


@golden_cases
def test_worker_threads(told: Cases) -> None:
    told["workers are those that the machine shows at work"] = measured(affinity=4)
    told["others of 16 run elsewhere"] = measured(affinity=4, size=16)
    told["a single worker works"] = measured((180.0, 5.0), affinity=4)
    told["the variable counts before the cores"] = measured(affinity=4, intra_op_variable="2")
    told["the program counts before the variable"] = measured(affinity=4, intra_op_variable="2", intra_op_threads=1)
    told["a single process"] = lambda: measured(size=1)
