import numpy as np

from tfdoctor.facts.operations.kernel_kinds import KernelRole, kernel
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.operation_types import base_type
from tfdoctor.facts.steps.steps import PS_PER_MS
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Least number of different kernels that convolve for one operation in one step, from which it is a search: an
# operation without one runs a single such kernel, and helpers beside it (kernel_names).
CANDIDATES = 4


class Limits(RuleLimits):
    steps: float = limit(2.0)
    late: float = limit(1.0)


class Searches(Record):
    """The steps in which cuDNN's search ran several algorithms of one convolution."""

    steps: int
    of: int
    late: int  # in the second half of all steps
    # Those that searched, with the ms per training step of all their kernels in those steps, and of the fastest.
    operations: tuple[tuple[str, float, float], ...] = ()

    @classmethod
    def measure(cls, steps: Steps, activity: Activity, device: Device) -> Self:
        """Count the kernels that convolve, by operation and step.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        work, every = activity.stages.get(Stage.DEVICE), steps.steps
        if device.kind != DeviceKind.GPU or device.missing or work is None:
            raise Unavailable(str(device.missing or "convolutions are searched for on GPUs only"))
        convolving = {
            label: CALLED.sub("", name)
            for label, (name, kind, ran) in enumerate(work.labels)
            if base_type(kind) in CONVOLUTIONS and kernel(ran).role is KernelRole.MATMUL
        }
        place = np.array([step.start_ps for step in every]).searchsorted(work.start_ps, side="right") - 1
        ran_ps: dict[tuple[int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for event in np.flatnonzero(np.isin(work.label, list(convolving))).tolist():
            at, label = int(place[event]), int(work.label[event])
            if at >= 0 and work.start_ps[event] < every[at].end_ps:
                lasted = int(work.end_ps[event] - work.start_ps[event])
                ran_ps[at, convolving[label]][work.labels[label][2]].append(lasted)
        searches = {place: [*ran.values()] for place, ran in ran_ps.items() if len(ran) >= CANDIDATES}
        tried, fastest = defaultdict[str, float](float), defaultdict[str, float](float)
        for (_, name), kernels in searches.items():
            tried[name] += sum(map(sum, kernels))
            fastest[name] += min(map(min, kernels))
        per_step, searched = PS_PER_MS * max(1, steps.count), {at for at, _ in searches}
        rows = [(name, total / per_step, fastest[name] / per_step) for name, total in tried.items()]
        late = sum(at >= len(every) // 2 for at in searched)
        return cls(len(searched), len(every), late, tuple(sorted(rows, key=lambda row: -row[1])))


def check(
    searches: Searches, breakdown: Breakdown, operations: Operations | None, padding: SequencePadding | None,
    program: Program | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Report searches that go on in the second half of the traced steps."""
    if not searches.steps:
        why = operations.why_unlisted if operations else ""
        return nothing("No convolution searched for an algorithm in the traced steps", why)
    summary = f"Convolutions searched for an algorithm in {searches.steps} of {searches.of} steps"
    lost_ms = sum(total - needed for _, total, needed in searches.operations)
    times = {row.name: row.ms for row in operations.rows} if operations else {}
    rows, few = program.batch_size if program else None, padding.inputs[0].buckets if padding else ()
    few_shapes = CODE["buckets"].format(bucketing(few, rows, fixed=True)) if padding else CODE["images"]
    return judged(
        Measure("steps in which a convolution searched", count(searches.steps), count(limits.steps)),
        Measure("traced steps", count(searches.of)),
        Measure("time of kernels that were only tried, per step", ms(lost_ms)),
        Measure("step time", ms(breakdown.step_ms)),
        Table.of(
            searches.operations,
            ("operation", lambda row: row[0]),
            ("time in kernels that were tried", lambda row: ms(row[1])),
            ("time of the fastest alone", lambda row: ms(row[2])),
            most=10,
        ),
        wrong=searches.steps >= limits.steps and searches.late >= limits.late,
        healthy=f"{summary} and not again",
        finding=f"{summary}; the kernels that were only tried take {milliseconds(lost_ms)} per step",
        remedies=(
            Remedy("Let batches have a few shapes", few_shapes),
            Remedy("Or switch the search off, where shapes must be arbitrary", CODE["off"]),
        ),
        effects=(
            Effect(Stage.DEVICE, needed / total, name, ms(times[name]), bound=Bound.AT_MOST)
            for name, total, needed in searches.operations
            if times.get(name, 0.0) >= total / 2  # else the typical step does not search
        ),
    )
