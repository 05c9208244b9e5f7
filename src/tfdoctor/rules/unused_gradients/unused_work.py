"""What eager steps compute in back-propagation for gradients that nothing uses."""

from typing import NamedTuple

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.python_work import EagerWork
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import GradientsTaken


class Unfollowed(NamedTuple):
    """A line that takes gradients in the traced steps, of which it is not known whether they are used."""

    at: Location | None
    too_few: bool  # its calls before the traced steps


@dataclass(frozen=True, slots=True)
class UnusedWork:
    """The line with the most useless back-propagation, and the time of that of all lines, in ms per traced step.

    ``kernels_ms`` is the operations' own time on a CPU, 0.0 on accelerators; ``host_ms`` is Python's.
    """

    calls: int = 0  # of tape.gradient in the traced steps
    unfollowed: Unfollowed | None = None  # a line of them
    variables: int = 0  # that the tape follows
    unused: int = 0  # of them: their gradients are not used
    returned: int = 0  # gradients without use that the calls of all lines returned
    names: tuple[str, ...] = ()
    types: tuple[tuple[str, int, float], ...] = ()  # of operations, with their number and ms
    at: Location | None = None
    operations: float = 0.0  # per traced step
    kernels_ms: float = 0.0
    host_ms: float = 0.0

    @classmethod
    def measure(cls, recording: Recording, eager: EagerWork, breakdown: Breakdown, device: Device) -> Self:
        """Convert the times of a few steps before the window into those of the traced steps, by their operations.

        Raises:
            Unavailable: the recording does not have the lines that take gradients.
        """
        manifest = recording.manifest
        lines = manifest.steps.gradients if manifest else None
        if manifest is None or lines is None or not manifest.window:
            raise Unavailable("the recording does not say which gradients are used", "record again")
        calls = sum(line.traced for line in lines)
        if calls and not eager.operations:
            raise Unavailable("the trace does not have the operations that Python starts")
        kernels_ms = breakdown[Stage.DEVICE] if device.kind is DeviceKind.CPU else 0.0
        steps = max(1, manifest.window.steps)
        places = Places.of(recording)
        unknown = (line for line in lines if line.traced and not (line.followed and line.is_timed))
        unfollowed = next((Unfollowed(places(line.at), line.too_few) for line in unknown), None)
        taken, operations, kernels, host = [], 0.0, 0.0, 0.0
        for line in lines:
            calls_ms, python_ms = _per_step(line, line.traced / steps, eager, breakdown, kernels_ms)
            if calls_ms + python_ms:
                taken.append((calls_ms + python_ms, line))
                operations += line.traced / steps * line.operations
                kernels, host = kernels + calls_ms, host + python_ms
        if not taken:
            return cls(calls, unfollowed)
        _, most = max(taken, key=lambda pair: pair[0])
        return cls(
            calls,
            unfollowed,
            most.variables,
            most.unused,
            sum(line.returned for _, line in taken),
            most.names,
            most.types,
            places(most.at),
            operations,
            kernels,
            host,
        )


def _per_step(
    taken: GradientsTaken, calls: float, eager: EagerWork, breakdown: Breakdown, all_kernels_ms: float
) -> tuple[float, float]:
    """Return the ms of the useless kernels of a line and of Python for them, per traced step.

    They are scaled by the time of an operation with Python's before it, which differs between traced and other
    steps. Of the time of the calls the kernels have the same part as in the whole step.
    """
    if not (eager.operations and taken.is_timed):
        return 0.0, 0.0
    slower = breakdown.step_ms / eager.operations / (taken.step_ms / taken.step_operations)
    total_ms = calls * slower * (taken.calls_ms + taken.python_ms)
    all_calls_ms = breakdown.step_ms * taken.step_calls_ms / taken.step_ms
    part = min(1.0, all_kernels_ms / all_calls_ms) if all_calls_ms else 0.0
    kernels_ms = min(calls * slower * taken.calls_ms * part, all_kernels_ms)
    return kernels_ms, min(total_ms - kernels_ms, breakdown[Stage.HOST])
