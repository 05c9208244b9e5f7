"""Each training process has threads for all cores.

## What it checks

Where several processes of a job train on one machine, as with Horovod or a process for each GPU: how many threads
TensorFlow has for one operation in each of them (`tf.config.threading`, `TF_NUM_INTRAOP_THREADS`, else all cores
of the process's affinity), whether all together are more than the cores, and whether the cores were busy while the
steps were traced.

## Why it matters

Each process takes as many threads as the machine has cores, whatever other processes there are: eight processes on
64 cores have 512. While they compute at the same time, an operation waits for its slowest thread, which waits for a
core, and on GPUs the thread that launches kernels waits too. What it costs is not measured: no saving is stated.

## How to fix

Give each process its part of the cores: `TF_NUM_INTRAOP_THREADS` = cores / processes, or bind the processes
(`mpirun --map-by socket`, `horovodrun` with `--binding-args`, `srun --cpus-per-task`): an affinity counts by
itself.

## Holds for

Recordings of `tfdoctor profile` that hold the workers of one machine. Processes that work by turns lose nothing by
sharing the cores: the rule speaks only where the cores were busy. Tested with records written by hand; never seen
on a machine with several GPUs.

## Sources

- [Horovod issue 2295: threads of several processes](https://github.com/horovod/horovod/issues/2295)
- [Horovod issue 2804: threads and affinity on 24 cores](https://github.com/horovod/horovod/issues/2804)
- [tf.config.threading.set_intra_op_parallelism_threads](https://www.tensorflow.org/api_docs/python/tf/config/threading/set_intra_op_parallelism_threads)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.rules.oversubscribed_cores.worker_threads import WorkerThreads
from tfdoctor.terms.humanize import number
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import Finding, Healthy, Measure, NotApplicable, Remedy, Severity, Verdict

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


def example(
    workers: WorkerThreads = WorkerThreads(8, 64), cores: Cores | Unavailable = Cores(64.0, busy=60.0)
) -> Verdict:
    """Eight processes have 64 threads each on 64 busy cores."""
    return check(workers, cores)


sick = example


def healthy() -> Verdict:
    """Eight processes have eight threads each."""
    return example(WorkerThreads(8, 8, given=True))
