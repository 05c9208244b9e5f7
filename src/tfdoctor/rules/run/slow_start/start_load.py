"""What other programs used of the cores while the run imported its modules."""

import numpy as np

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording


class StartLoad(Record):
    """Means over the start of the run."""

    cores: Cores

    @classmethod
    def measure(cls, recording: Recording, phases: RunPhases, hardware: Hardware) -> Self:
        """Average the samples from the start of the process for as long as it started and imported.

        Raises:
            Unavailable: the cores are unknown, or nothing was sampled in that time.
        """
        began = run_course.whole_run(recording).process.started_unix_ns
        ended = began + phases.of(Phase.START, Phase.IMPORTS) * 1e6
        known = [
            (row.host.run_cpu_pct, row.host.other_cpu_pct)
            for row in recording.samples
            if began < row.unix_ns <= ended
            and row.host and row.host.run_cpu_pct is not None and row.host.other_cpu_pct is not None
        ]  # fmt: skip
        if not known or not hardware.cores:
            raise Unavailable("the load of the machine was not sampled while modules were imported")
        run, others = np.mean(known, axis=0) / 100.0
        return cls(Cores(hardware.cores, float(run), float(others)))
