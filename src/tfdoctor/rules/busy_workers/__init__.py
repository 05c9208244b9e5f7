from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.busy_workers.job_processes import JobProcesses

__doc__, CODE = page(__file__)

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
    return Remedy("Compute once what the workers compute again in each epoch", CODE["once"])
