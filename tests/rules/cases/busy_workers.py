"""The cases of busy-workers: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.busy_workers import PY_DATASET, check
from tfdoctor.rules.execution.busy_workers.job_processes import JobProcesses


def example(
    processes: JobProcesses = JobProcesses(1.4, (0.3, 0.25)),
    cores: Cores = Cores(2.0, 1.95),
    step: Breakdown | None = None,
    kind: str = PY_DATASET,
) -> Verdict:
    """Two workers take 0.55 of two cores that the step would use."""
    parts = step or Breakdown.of(device=60.0, host=2.0)
    return check(processes, cores, parts, Program(input_kind=kind))


sick = example


def healthy() -> Verdict:
    """Workers that only hand over rows."""
    return example(JobProcesses(1.9, (0.02, 0.02)))
