"""busy-workers: both sides of the limit, processes that take nothing from the step, and which used the cores."""

from tests.rules.kit import *
from tfdoctor.rules.execution.busy_workers import PY_DATASET, check
from tfdoctor.rules.execution.busy_workers.job_processes import JobProcesses

TRAINED = EndedProcess(pid=7, trained=True)


def example(
    processes: JobProcesses = JobProcesses(1.4, (0.3, 0.25)), cores: Cores = Cores(2.0, 1.95),
    step: Breakdown | None = None, kind: str = PY_DATASET,
) -> Verdict:  # fmt: skip
    """Two workers take 0.55 of two cores that the step would use."""
    parts = step or Breakdown.of(device=60.0, host=2.0)
    return check(processes, cores, parts, Program(input_kind=kind))


def job(*shares: dict[str, float] | None, trained: tuple[EndedProcess, ...] = (TRAINED,)) -> JobProcesses:
    """Measure one sample a second; None is one of an earlier version."""
    hosts: list[dict[str, Any]] = [{} if one is None else {"processes_pct": one} for one in shares]
    samples = (
        {"unix_ns": at * 10**9, "host": {"run_cpu_pct": 100.0, **host}} for at, host in enumerate(hosts, start=1)
    )
    return JobProcesses.measure(recording(samples=samples, manifest=manifest(processes=trained)))


sick = example
healthy = described("Workers that only hand over rows.", example, JobProcesses(1.9, (0.02, 0.02)))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a tenth of the core time"] = [example(JobProcesses(2 - own, (own,))) for own in (0.21, 0.19)]
    told["sixteen cores, of which the job uses two"] = example(cores=Cores(16.0, 1.95))
    told["a step that waits for its input"] = example(step=Breakdown.of(device=60.0, input=20.0))
    told["what others took, at most half"] = example(JobProcesses(1.5, (0.5,)), step=Breakdown.of(device=60.0))
    told[...] = example(JobProcesses(0.5, (1.5,)), step=Breakdown.of(device=60.0))
    told["processes that are no workers are not called so"] = example(kind="tf.data")
    told["the process that trains is no helper"] = job({"7": 100.0, "8": 30.0, "9": 50.0}, {"7": 120.0, "9": 50.0})
    two = TRAINED, EndedProcess(pid=8, trained=True)
    told["no process that trains"] = lambda: job({"7": 100.0, "8": 30.0}, trained=())
    told["two processes that train"] = lambda: job({"7": 100.0, "8": 30.0}, trained=two)
    told["an older recording does not tell them apart"] = lambda: job(None)
