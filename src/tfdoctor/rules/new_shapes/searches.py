"""Steps in which cuDNN's search runs several algorithms of one convolution."""

import numpy as np

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.kernel_kinds import KernelRole, kernel
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.operation_types import CONVOLUTIONS, base_type
from tfdoctor.facts.steps.steps import PS_PER_MS
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.device_work import Work

# Least number of different kernels that convolve for one operation in one step, from which it is a search: an
# operation without one runs a single such kernel, and helpers beside it (kernel_names).
CANDIDATES = 4


@dataclass(frozen=True, slots=True)
class Searches:
    """The steps in which an operation searched; ms per training step of the searching operations.

    ``total_ms`` is the time of all their kernels in those steps, ``needed_ms`` that of the fastest kernel alone.
    """

    steps: int
    of: int
    late: int  # in the second half of all steps
    operations: tuple[tuple[str, float, float], ...] = ()  # name, total_ms, needed_ms

    @classmethod
    def measure(cls, steps: Steps, activity: Activity, device: Device) -> Self:
        """Count the kernels that convolve, by operation and step.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        work = activity.stages.get(Stage.DEVICE)
        if device.kind != DeviceKind.GPU or device.missing or work is None:
            why = "convolutions are searched for on GPUs only"
            raise Unavailable(str(device.missing or why))
        searched: set[int] = set()
        times: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        for (place, name), kernels in _by_step(work, steps).items():
            if len(kernels) >= CANDIDATES:
                searched.add(place)
                total, least = times[name]
                spent = sum(sum(runs) for runs in kernels.values())
                times[name] = (total + spent, least + min(min(runs) for runs in kernels.values()))
        per_step = PS_PER_MS * max(1, sum(step.calls for step in steps.steps))
        rows = ((name, total / per_step, least / per_step) for name, (total, least) in times.items())
        late = sum(at >= len(steps.steps) // 2 for at in searched)
        return cls(len(searched), len(steps.steps), late, tuple(sorted(rows, key=lambda row: -row[1])))

    @property
    def lost_ms(self) -> float:
        """The time of the kernels that were only tried."""
        return sum(total - needed for _, total, needed in self.operations)


def _by_step(work: Work, steps: Steps) -> dict[tuple[int, str], dict[str, list[int]]]:
    """Return the times of each kernel that convolves, in ps, by step and operation."""
    convolving = {
        label: CALLED.sub("", name)
        for label, (name, kind, ran) in enumerate(work.labels)
        if base_type(kind) in CONVOLUTIONS and kernel(ran).role is KernelRole.MATMUL
    }
    starts = np.array([step.start_ps for step in steps.steps], np.int64)
    ends = np.array([step.end_ps for step in steps.steps], np.int64)
    place = starts.searchsorted(work.start_ps, side="right") - 1
    found: dict[tuple[int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for event in np.flatnonzero(np.isin(work.label, list(convolving))).tolist():
        at, label = int(place[event]), int(work.label[event])
        if at >= 0 and work.start_ps[event] < ends[at]:
            lasted = int(work.end_ps[event] - work.start_ps[event])
            found[at, convolving[label]][work.labels[label][2]].append(lasted)
    return found
