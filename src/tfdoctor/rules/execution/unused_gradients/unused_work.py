"""What eager steps compute in back-propagation for gradients that nothing uses."""

from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import GradientsTaken


class UnusedWork(Record):
    """The line with the most useless back-propagation, and the time of that of all lines, in ms per traced step.

    ``kernels_ms`` is the operations' own time on a CPU, 0.0 on accelerators; ``host_ms`` is Python's.
    """

    calls: int = 0  # of tape.gradient in the traced steps
    # A line of them, of which it is not known whether they are used; whether its calls before were too few to tell.
    unfollowed: tuple[Location | None, bool] | None = None
    most: GradientsTaken | None = None
    at: Location | None = None
    returned: int = 0  # gradients without use that the calls of all lines returned
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
        steps, places, taken = max(1, manifest.window.steps), Places.of(recording), []
        unknown = (line for line in lines if line.traced and not (line.followed and line.is_timed))
        unfollowed = next(((places(line.at), line.too_few) for line in unknown), None)
        for line in (line for line in lines if eager.operations and line.is_timed):
            # Scaled by the time of an operation with Python's before it, which differs between traced and other
            # steps. Of the time of the calls the kernels have the same part as in the whole step.
            slower = breakdown.step_ms / eager.operations / (line.step_ms / line.step_operations)
            scale = line.traced / steps * slower
            all_calls_ms = breakdown.step_ms * line.step_calls_ms / line.step_ms
            part = min(1.0, kernels_ms / all_calls_ms) if all_calls_ms else 0.0
            own_ms = min(scale * line.calls_ms * part, kernels_ms)
            python_ms = min(scale * (line.calls_ms + line.python_ms) - own_ms, breakdown[Stage.HOST])
            if own_ms + python_ms:
                taken.append((line, own_ms, python_ms))
        if not taken:
            return cls(calls, unfollowed)
        most = max(taken, key=lambda one: one[1] + one[2])[0]
        operations = sum(line.traced / steps * line.operations for line, *_ in taken)
        own_ms, python_ms = sum(own_ms for _, own_ms, _ in taken), sum(python_ms for *_, python_ms in taken)
        returned = sum(line.returned for line, *_ in taken)
        return cls(calls, unfollowed, most, places(most.at), returned, operations, own_ms, python_ms)
