"""Whether the runs of a recorded program may take turns, and the memory that each of them needs for it."""

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.terms.kinds import DeviceKind

# Parts of a step on a CPU in which the program computes; in others it may wait.
COMPUTE = ("host", "device", "transfer")
# Share of the step from which a wait counts, and share of the cores from which it is for computation.
WAITS, BUSY = 0.05, 0.7


def bytes_beside_others(diagnosis: Diagnosis) -> float | None:
    """Return the memory of a run that may take turns with others, as far as it is known.

    None on an accelerator, as TensorFlow takes all of its memory; and where steps wait while cores are idle, as
    what a program waits for outside of it goes on while it is stopped.
    """
    if diagnosis.subject.device is not DeviceKind.CPU or _waits_outside(diagnosis):
        return None
    return diagnosis.conditions.host_bytes


def _waits_outside(diagnosis: Diagnosis) -> bool:
    """Return whether the steps may wait for something that no core of this machine computes."""
    steps, conditions = diagnosis.steps, diagnosis.conditions
    computes = sum(steps.shown_breakdown_ms.get(part, 0.0) for part in COMPUTE)
    cores, used = conditions.cores_usable, conditions.cores_run
    busy = cores and used and used >= BUSY * cores
    return not busy and computes <= (1 - WAITS) * (steps.shown_ms or 0.0)
