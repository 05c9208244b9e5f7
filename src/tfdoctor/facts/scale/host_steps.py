"""One host's steps, for comparison with those of other hosts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import StepSource
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Trace

# Sources of steps (Steps.source) whose numbers count the run's steps, the same on every worker; other sources count
# from the start of the trace.
COUNTED = frozenset(
    [
        StepSource.KERAS_FIT, StepSource.KERAS_TRAIN_ON_BATCH, StepSource.TF_DATA_LOOP, StepSource.REPEATED_CALL,
        StepSource.EAGER_GRADIENT, StepSource.SESSION_RUN, StepSource.MARKERS, StepSource.TPU_STEPS,
    ]
)  # fmt: skip

# A host's own stages: in a collective it may be waiting for the others.
OWN = tuple(stage for stage in Stage if stage is not Stage.COLLECTIVE)
# Shift between wall clock and monotonic clock from which the wall clock was set: Linux slews both together
# (clock_gettime(2)), and reading one after the other takes microseconds, or a few ms on a busy machine.
STEPPED_MS = 5.0

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSteps:
    """The n steps of one host; times in ms per training step, moments in ns since 1970.

    ``parts`` has (n,) ms for each part of Breakdown. ``starts_ns`` and ``ends_ns`` are (n,) when the
    training call began and returned; empty where ``clock_missing`` says why they are not known.
    ``boot_ns`` is when the machine's monotonic clock began, None where that was not recorded.
    """

    numbers: tuple[int, ...]
    counted: bool  # the numbers are those of the run
    parts: Mapping[str, tuple[float, ...]]
    starts_ns: tuple[int, ...] = ()
    ends_ns: tuple[int, ...] = ()
    clock_missing: str = ""
    machine: str = ""
    boot_ns: int | None = None

    @classmethod
    def measure(cls, trace: Trace, recording: Recording, steps: Steps, breakdown: Breakdown) -> Self:
        """Put the steps on the wall clock, where trace and manifest hold it."""
        clocks = recording.manifest.clock if recording.manifest else ()
        offsets = [clock.unix_ns - clock.monotonic_ns for clock in clocks]
        moved, missing = (max(offsets) - min(offsets)) / NS_PER_MS if offsets else 0.0, ""
        if trace.started_unix_ns is None:
            missing = "the trace has no absolute time (TensorFlow 2.3 and 2.4 write none)"
        elif moved > STEPPED_MS:
            missing = f"the clock was set by {moved:.0f} ms during the run"
        start, timed = trace.started_unix_ns or 0, () if missing else steps.steps
        return cls(
            numbers=tuple(step.number for step in steps.steps),
            counted=steps.source in COUNTED,
            parts={str(part): tuple(row[part] for row in breakdown.steps) for part in breakdown.median},
            starts_ns=tuple(start + step.start_ps // 1000 for step in timed),
            ends_ns=tuple(start + step.call_end_ps // 1000 for step in timed),
            clock_missing=missing,
            machine=next(iter(trace.hostnames), ""),
            boot_ns=offsets[0] if offsets else None,
        )

    @property
    def own_ms(self) -> tuple[float, ...]:
        """(n,) the time of the host's own work: all but collectives and unknown time."""
        own_parts = [self.parts[part] for part in OWN]
        return tuple(map(sum, zip(*own_parts, strict=True)))

    @property
    def total_ms(self) -> tuple[float, ...]:
        """(n,) how long the steps took, in ms."""
        return tuple(map(sum, zip(*self.parts.values(), strict=True)))

    @property
    def is_whole(self) -> bool:
        """Whether the trace accounts for at least nine tenths of the steps."""
        return sum(self.parts[UNKNOWN]) <= sum(self.total_ms) / 10
