"""Which of the job's processes used the cores while the steps were traced: the one that trains, or others."""

from tfdoctor.facts.machine.samples import process_cores
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class JobProcesses(Record):
    """Means over the traced window, in logical CPUs; ``helpers`` are the other processes, the busiest first."""

    training: float
    helpers: tuple[float, ...] = ()

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Sort the sampled processes of the run.

        Raises:
            Unavailable: processes were not sampled apart, or it is unknown which of them trained.
        """
        cores = process_cores(recording)
        if not cores:
            raise Unavailable("the processes of the run were not sampled one by one; record again")
        manifest = recording.manifest
        trained = [process for process in manifest.processes if process.trained] if manifest else []
        if len(trained) != 1 or trained[0].pid is None:
            raise Unavailable("it is unknown which of the run's processes trained")
        training = cores.pop(str(trained[0].pid), 0.0)
        return cls(training, tuple(sorted(cores.values(), reverse=True)))

    @property
    def helping(self) -> float:
        """The cores that all other processes of the job used."""
        return sum(self.helpers)

    @property
    def share(self) -> float:
        """Their share of the cores that the job used, 0 to 1."""
        busy = self.training + self.helping
        return self.helping / busy if busy else 0.0
