"""Other processes of the job take the cores.

## What it checks

On a CPU run whose steps do not wait for input: which share of the cores' time that the job gets goes to its other
processes, such as the workers of a Keras `PyDataset` with `use_multiprocessing=True`, while the step's own threads
compute and no core is free. The report shows who used the cores: the training process, the job's other processes,
and other programs.

## Why it matters

Workers that prepare batches ahead are free of charge only while cores are idle. Where the step's operations use all
cores, each core that a worker takes is one that the step goes without, although the batches are ready in time.

## How to fix

Compute what is the same in each epoch once, before training. What changes from epoch to epoch: apply it to whole
batches, with fewer or cheaper array operations. Fewer workers alone help only if they prepare batches that nobody
takes. Where the other processes are no workers (an evaluation beside the training, a service), run them
on another machine or after the training.

## Holds for

CPU runs recorded with `tfdoctor profile`, where one process trains. The traced steps count: a job that waits for
its workers later is another case. The fastest tenth of the steps of a small convolutional network took 62 to 95 ms
with two worker processes that filtered its images, and 40 ms with the images filtered once, on two cores that other
programs used as well.

## Sources

- [PyDataset, Keras: workers and use_multiprocessing](https://keras.io/api/utils/python_utils/#pydataset-class)
- [multiprocessing, Python: contexts and start methods](https://docs.python.org/3/library/multiprocessing.html)
- [psutil: Process.cpu_percent](https://psutil.readthedocs.io/en/latest/#psutil.Process.cpu_percent)
- [Better performance with the tf.data API](https://www.tensorflow.org/guide/data_performance)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import not_on, timed_steps
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.busy_workers.job_processes import JobProcesses
from tfdoctor.terms.humanize import counted, number, percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(
        *(DeviceKind.GPU, DeviceKind.TPU),
        verdict=Healthy(summary="The step computes on an accelerator, which other processes leave alone"),
    ),
    timed_steps,
)
BY_HAND = "what the processes compute has to be made cheaper, or computed before training"

PY_DATASET = "PyDataset"
"""What feeds the run where its workers may be processes."""

LEAST = 0.5
"""Share of the compute that is left in any case: the scheduler gives as many threads of others no more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When other processes of the job slow its steps."""

    share: float = share_limit(
        0.1,
        "Smallest share of the job's core time in other processes; the samples of a short window are good to a "
        "few percent",
    )


def check(
    processes: JobProcesses, cores: Cores, breakdown: Breakdown, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Compare what the job's other processes take of the cores with what the job gets of them."""
    evidence = _evidence(processes, cores, limits)
    took = f"{_named(processes, program)} used {number(processes.helping)} cores"
    if processes.share < limits.share:
        return Healthy(summary=f"Other processes of the job {_little(processes)}", evidence=evidence)
    if not cores.crowded:
        return Healthy(summary=f"{took}, but cores were free", evidence=evidence)
    if breakdown.waits_for_input:
        return NotApplicable(reason=f"{took}, and the step waits for its input, which they may make")
    return Finding(
        summary=f"{took}, {percent(processes.share)} of the core time that the job got, and no core was free",
        evidence=evidence,
        remedies=(_remedy(program),),
        effects=(_effect(processes, breakdown),),
    )


def _named(processes: JobProcesses, program: Program | None) -> str:
    of_data = program is not None and program.input_kind == PY_DATASET
    what = ("worker process", "worker processes") if of_data else ("other process", "other processes")
    return counted(len(processes.helpers), *what)


def _little(processes: JobProcesses) -> str:
    if not processes.helpers:
        return "used no core"
    return f"used {percent(processes.share)} of its core time"


def _effect(processes: JobProcesses, breakdown: Breakdown) -> Effect:
    """Let the compute have the cores' time of the other processes too: a ceiling, as it may not use it."""
    compute = breakdown[Stage.DEVICE]
    gone = processes.share * breakdown.step_ms
    left = max(LEAST, 1.0 - gone / compute) if compute else 1.0
    why = f"other processes of the job took {percent(processes.share)} of its core time"
    return Effect(Stage.DEVICE, left, of=ms(compute), bound=Bound.AT_MOST, why=why)


def _evidence(processes: JobProcesses, cores: Cores, limits: Limits) -> tuple[Measure | Table, ...]:
    users = (
        ("training process", processes.training),
        *((f"other process {at}", used) for at, used in enumerate(processes.helpers, start=1)),
        ("other programs", cores.others),
    )
    label = "share of the job's core time in its other processes"
    return (
        Measure.share(label, processes.share, limits.share),
        Measure("cores that the run may use", count(cores.usable)),
        Table.of(users, ("who", lambda user: user[0]), ("cores", lambda user: count(user[1])), most=8),
    )


def _remedy(program: Program | None) -> Remedy:
    if program is None or program.input_kind != PY_DATASET:
        return Remedy("Run the other processes on another machine, or after the training")
    return Remedy("Compute once what the workers compute again in each epoch", ONCE)


ONCE = """\
batches = [data[index] for index in range(len(data))]  # before training, or saved to a file
images, labels = (np.concatenate(part) for part in zip(*batches))
model.fit(images, labels, batch_size=batch_size, ...)"""


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
