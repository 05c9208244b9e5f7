from tfdoctor.families.kit import *
from tfdoctor.rules.execution.busy_workers.job_processes import JobProcesses

__doc__, CODE = page(__file__)
PRECONDITIONS = (
    only_on(
        DeviceKind.CPU, Healthy(summary="The step computes on an accelerator, which other processes leave alone")
    ),
    timed_steps,
)

PY_DATASET = "PyDataset"  # What feeds the run where its workers may be processes
LEAST = 0.5  # Share of the compute that is left in any case: the scheduler gives as many threads of others no more


class Limits(RuleLimits):
    share: float = share_limit(0.1)


def check(
    processes: JobProcesses, cores: Cores, breakdown: Breakdown, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Compare what the job's other processes take of the cores with what the job gets of them."""
    share, helpers = processes.share, processes.helpers
    of_data = program is not None and program.input_kind == PY_DATASET
    users = (
        ("training process", processes.training),
        *((f"other process {at}", used) for at, used in enumerate(helpers, start=1)),
        ("other programs", cores.others),
    )
    evidence = (
        Measure.share("share of the job's core time in its other processes", share, limits.share),
        Measure("cores that the run may use", count(cores.usable)),
        Table.of(users, ("who", lambda user: user[0]), ("cores", lambda user: count(user[1])), most=8),
    )
    if share < limits.share:
        little = f"used {percent(share)} of its core time" if helpers else "used no core"
        return Healthy(summary=f"Other processes of the job {little}", evidence=evidence)
    what = ("worker process", "worker processes") if of_data else ("other process", "other processes")
    took = f"{counted(len(helpers), *what)} used {with_noun(processes.helping, 'core')}"
    if not cores.crowded:
        return Healthy(summary=f"{took}, but cores were free", evidence=evidence)
    if breakdown.waits_for_input:
        return NotApplicable(reason=f"{took}, and the step waits for its input, which they may make")
    # Let the compute have the cores' time of the other processes too: a ceiling, as it may not use it.
    compute = breakdown[Stage.DEVICE]
    left = max(LEAST, 1.0 - share * breakdown.step_ms / compute) if compute else 1.0
    why = f"other processes of the job took {percent(share)} of its core time"
    remedy = Remedy("Run the other processes on another machine, or after the training")
    if of_data:
        remedy = Remedy("Compute once what the workers compute again in each epoch", CODE["once"])
    return Finding(
        summary=f"{took}, {percent(share)} of the core time that the job got, and no core was free",
        evidence=evidence,
        remedies=(remedy,),
        effects=(Effect(Stage.DEVICE, left, of=ms(compute), bound=Bound.AT_MOST, why=why),),
    )
