"""What a change saves: a small arithmetic of which stages hide which.

    compute = exposed host work + max(device, host work that the device hides)   (CPU run: host + device)
    rest    = compute + transfers + collectives + between + unknown
    step    = max(input made beside the step, rest) + input made while the trainer waits

Without an effect the formula gives the measured step, because its terms are the measured exposed times.
What it must guess is how long the input takes when nobody waits for it: the pipeline's own times say
that, and where a waiting trainer contradicts them the difference is the model's residual.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.activity import Activity
from tfdoctor.facts.breakdown import READY_MS, UNKNOWN, Breakdown
from tfdoctor.facts.device import Device
from tfdoctor.facts.hardware import Hardware
from tfdoctor.facts.input_pipeline import InputPipeline, Segment
from tfdoctor.facts.samples import Samples
from tfdoctor.facts.steps import PS_PER_MS, Steps
from tfdoctor.recording import Recording
from tfdoctor.verdict import Effect, Stage

TRUSTED_RESIDUAL = 0.10
"""Beyond this share of the step the model explains too little: savings become ceilings."""

DISTORTED = 1.5
"""Times that a call may take longer while it is traced; beyond it a third of the step is profiling."""

WAITING = 0.02
"""A trainer that waits for less than this share of the step keeps up with its input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """A step's stages, in ms per training step.

    ``exposed`` sums to the step. ``segments`` are the input pipeline's; empty when it is not known
    how batches are made. ``host_work`` is the host's work including what the device's hides.
    """

    device: str
    exposed: Mapping[str, float]
    segments: tuple[Segment, ...] = ()
    host_work: float = 0.0
    busy_share: float | None = None  # of the cores that the run may use; None is not sampled
    slowdown: float = 1.0  # of the training call by being traced

    @classmethod
    def measure(  # noqa: PLR0913, PLR0917 - it needs all the facts that it names
        cls,
        breakdown: Breakdown,
        device: Device,
        activity: Activity,
        steps: Steps,
        pipeline: InputPipeline | None,
        hardware: Hardware,
        samples: Samples | None,
        recording: Recording,
    ) -> Self:
        """Take the stages' exposed time from the breakdown, the input's from its pipeline."""
        return cls(
            device=device.kind,
            exposed=breakdown.median,
            segments=pipeline.segments if pipeline else (),
            host_work=_host_work(activity, steps, breakdown),
            busy_share=_busy_share(hardware, samples),
            slowdown=slowdown(recording, steps),
        )

    @property
    def step_ms(self) -> float:
        """The measured step."""
        return sum(self.exposed.values())

    @property
    def residual(self) -> float:
        """How much longer a waiting trainer's input takes than its stages' own times explain, in ms."""
        beside = [segment.ms for segment in self.segments if segment.overlapped]
        if not beside or not self._waits:
            return 0.0
        return self.step_ms - self._serial - max(beside)

    @property
    def _serial(self) -> float:
        """The input work that is done while the trainer waits."""
        own = sum(segment.ms for segment in self.segments if not segment.overlapped)
        return min(self.exposed[Stage.INPUT], own)

    @property
    def _waits(self) -> bool:
        """Whether the trainer waits for input that is made beside the step."""
        return self.exposed[Stage.INPUT] - self._serial > max(READY_MS, WAITING * self.step_ms)

    @property
    def trusted(self) -> bool:
        """Whether the formula explains the measured step, and the step is the run's own."""
        return abs(self.residual) <= TRUSTED_RESIDUAL * self.step_ms and not self.distorted

    @property
    def distorted(self) -> bool:
        """Whether the traced steps are mostly the profiler's: what it slows most then looks guilty."""
        return self.slowdown > DISTORTED

    def predict(self, effects: Iterable[Effect]) -> float:
        """Return the step's ms after these effects; their order does not matter."""
        by_stage: dict[Stage, list[Effect]] = defaultdict(list)
        for effect in effects:
            by_stage[effect.stage].append(effect)
        if not by_stage:
            return self.step_ms
        floor = max(0.0, self.exposed.get(UNKNOWN, 0.0), self._cores_bound(by_stage))
        return max(floor, self._formula(by_stage))

    def _cores_bound(self, effects: Mapping[Stage, list[Effect]]) -> float:
        """Return how long the cores are busy: work that only moves beside the step keeps them so."""
        if self.device != "CPU" or self.busy_share is None:
            return 0.0
        moved = [effect for effect in effects.get(Stage.INPUT, ()) if effect.overlaps]
        if not moved:
            return 0.0
        stay = {**effects, Stage.INPUT: [e for e in effects[Stage.INPUT] if not e.overlaps]}
        return self.busy_share * self._formula(stay)

    def saving(self, effects: Iterable[Effect]) -> float:
        """Return the ms that these effects save per step; negative when they cost time."""
        return self.step_ms - self.predict(effects)

    def _formula(self, effects: Mapping[Stage, list[Effect]]) -> float:
        work = {
            stage: _apply(self.exposed[stage], effects.get(stage, []))
            for stage in Stage
            if stage is not Stage.INPUT
        }
        compute = work[Stage.HOST] + max(work[Stage.DEVICE], self._hidden_host)
        rest = compute + work[Stage.TRANSFER] + work[Stage.COLLECTIVE] + work[Stage.BETWEEN]
        rest += self.exposed.get(UNKNOWN, 0.0)
        beside, serial = self._input(effects.get(Stage.INPUT, []))
        return max(beside, rest) + serial

    @property
    def _hidden_host(self) -> float:
        """The host's work that the device's hides: launching is serial, so it stays when compute shrinks.

        A host that leaves the device idle for longer than it works is what limits the step: kernels
        run as soon as they are launched, and faster ones only wait longer for the next launch.
        """
        if self.device == "CPU":
            return 0.0
        host, device = self.exposed[Stage.HOST], self.exposed[Stage.DEVICE]
        return device if host > device else min(device, max(0.0, self.host_work - host))

    def _input(self, effects: list[Effect]) -> tuple[float, float]:
        """Return the input's time beside the step and in series with it, after the effects."""
        moved = any(effect.overlaps for effect in effects)
        segments = self._calibrated()
        beside = [_segment(s, effects) for s in segments if s.overlapped or moved]
        serial = [_segment(s, effects) for s in segments if not s.overlapped and not moved]
        return max(beside, default=0.0), sum(serial)

    def _calibrated(self) -> tuple[Segment, ...]:
        """Return the segments, made to agree with what the trainer was seen to wait.

        A trainer that waits runs at the pace of its slowest segment: that one takes the step. One
        that does not wait has a pipeline which is at least as fast as the rest of the step.
        """
        beside = [segment for segment in self.segments if segment.overlapped and segment.ms]
        slowest = max((segment.ms for segment in beside), default=0.0)
        waiting = self._waits and slowest > 0
        serial = self._serial if waiting else self.exposed[Stage.INPUT]
        pace = self.step_ms - serial
        return (
            *_to_total([s for s in self.segments if not s.overlapped and s.ms], serial),
            *(_to_pace(s, pace, limiting=waiting and s.ms == slowest) for s in beside),
        )


def _to_total(segments: list[Segment], total: float) -> list[Segment]:
    """Stretch segments to a known total; without any, the whole of it is of unknown origin."""
    own = sum(segment.ms for segment in segments)
    if not own:
        return [Segment({"": total}, overlapped=False)]
    return [_stretch(segment, total / own) for segment in segments]


def _to_pace(segment: Segment, pace: float, *, limiting: bool) -> Segment:
    """Make the limiting segment take the pace; any other is at least as fast."""
    return _stretch(segment, pace / segment.ms if limiting else min(1.0, pace / segment.ms))


def _stretch(segment: Segment, factor: float) -> Segment:
    return Segment({path: ms * factor for path, ms in segment.stages.items()}, segment.overlapped)


def _segment(segment: Segment, effects: Iterable[Effect]) -> float:
    mine = [e for e in effects if not e.subject or e.subject in segment.stages]
    return sum(
        ms * _factor(e for e in mine if e.subject in ("", path))
        for path, ms in segment.stages.items()
    )


def _factor(effects: Iterable[Effect]) -> float:
    factor = 1.0
    for effect in sorted(effects, key=lambda effect: effect.scales):
        factor *= effect.scales
    return factor


def _apply(work: float, effects: Iterable[Effect]) -> float:
    """Return a stage's work after effects on the whole of it or on subjects within it.

    Effects on one subject multiply, so that two of them never save the same milliseconds twice.
    """
    subjects: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        subjects[effect.subject].append(effect)
    whole = _factor(subjects.pop("", []))
    saved = 0.0
    for mine in subjects.values():
        taken = max((effect.of.value for effect in mine if effect.of), default=0.0)
        saved += taken * (1.0 - _factor(mine))
    return max(0.0, work - saved) * whole


def slowdown(recording: Recording, steps: Steps) -> float:
    """Return how many times as long a step took while it was traced; 1.0 where unknown."""
    seen = (recording.manifest.steps.untraced if recording.manifest else None) or {}
    before = float(seen.get("median_ms") or 0.0)
    inside = steps.median_ms if seen.get("of") == "steps" else steps.median_call_ms
    traced = float(seen.get("traced_ms") or inside)  # of calls that hold the steps, unseen
    return traced / before if before else 1.0


def _busy_share(hardware: Hardware, samples: Samples | None) -> float | None:
    if not hardware.cores or samples is None or samples.run_cores is None:
        return None
    return min(1.0, samples.run_cores / hardware.cores)


def _host_work(activity: Activity, steps: Steps, breakdown: Breakdown) -> float:
    """Return the host's launching work per step, in ms; for accelerators."""
    inside = sum(activity.dispatch.within(s.start_ps, s.end_ps).total for s in steps.typical_steps)
    calls = sum(s.calls for s in steps.typical_steps)
    return max(breakdown["host"], inside / PS_PER_MS / calls)
