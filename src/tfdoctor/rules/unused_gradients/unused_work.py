"""What eager steps compute in back-propagation for gradients that nothing uses."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import GradientsTaken
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Location, Stage


@dataclass(frozen=True, slots=True)
class Unfollowed:
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
        rows = [Scaled.of(line, line.traced / steps, eager, breakdown, kernels_ms) for line in lines]
        rows = [row for row in rows if row.total_ms]
        if not rows:
            return cls(calls, unfollowed)
        taken = max(rows, key=lambda row: row.total_ms).taken
        return cls(
            calls,
            unfollowed,
            taken.variables,
            taken.unused,
            sum(row.taken.returned for row in rows),
            taken.names,
            taken.types,
            places(taken.at),
            sum(row.operations for row in rows),
            sum(row.kernels_ms for row in rows),
            sum(row.host_ms for row in rows),
        )


@dataclass(frozen=True, slots=True)
class Scaled:
    """The useless work of a line, per traced step."""

    taken: GradientsTaken
    operations: float
    kernels_ms: float
    host_ms: float

    @classmethod
    def of(
        cls, taken: GradientsTaken, calls: float, eager: EagerWork, breakdown: Breakdown, all_kernels_ms: float
    ) -> Self:
        """Scale by the time of an operation with Python's before it, which differs between traced and other steps.

        Of the time of the calls the kernels have the same part as in the whole step.
        """
        if not (eager.operations and taken.is_timed):
            return cls(taken, 0.0, 0.0, 0.0)
        slower = breakdown.step_ms / eager.operations / (taken.step_ms / taken.step_operations)
        total_ms = calls * slower * (taken.calls_ms + taken.python_ms)
        all_calls_ms = breakdown.step_ms * taken.step_calls_ms / taken.step_ms
        part = min(1.0, all_kernels_ms / all_calls_ms) if all_calls_ms else 0.0
        kernels_ms = min(calls * slower * taken.calls_ms * part, all_kernels_ms)
        host_ms = min(total_ms - kernels_ms, breakdown[Stage.HOST])
        return cls(taken, calls * taken.operations, kernels_ms, host_ms)

    @property
    def total_ms(self) -> float:
        """Both, in ms per step."""
        return self.kernels_ms + self.host_ms
