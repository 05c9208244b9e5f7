"""How many processes of a job train on this machine, and how many threads each of them computes with."""

from tfdoctor.facts.machine.samples import process_cores
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording

VARIABLE = "TF_NUM_INTRAOP_THREADS"

# Mean number of cores of a process from which it counts as one that trains: with a GPU, it launches kernels.
WORKING = 0.25


class WorkerThreads(Record):
    """Training processes of one machine, and the threads that each has for one operation."""

    workers: int
    threads: int  # of TensorFlow's intra-op pool, in each process

    @classmethod
    def measure(cls, recording: Recording, program: Program) -> Self:
        """Count the recorded workers that the samples of this machine show at work."""
        manifest = recording.manifest
        size = (manifest.worker.size if manifest and manifest.worker else None) or 1
        trained = max(len(recording.workers), size)
        if manifest is None or trained == 1:
            raise Unavailable("one process trains")
        cores = process_cores(recording)
        if not cores:
            raise Unavailable("the processes of the run were not sampled one by one")
        settings = program.settings
        variable = settings.intra_op_variable or manifest.environment.get(VARIABLE, "")
        given = settings.intra_op_threads or (int(variable) if variable.isdecimal() else 0)
        threads = given or settings.affinity or manifest.host.cores_logical
        if not threads:
            raise Unavailable("the threads of the processes were not recorded")
        return cls(min(trained, sum(one >= WORKING for one in cores.values())), threads)
