"""What a change saves: a small arithmetic of which stages hide which.

    compute = exposed host work + max(device, host work that the device hides)   (CPU run: host + device)
    rest    = compute + transfers + collectives + between + unknown
    step    = max(input that overlaps the step, rest) + input made while the trainer waits

On a CPU run the host's work for operations that a change removes goes with them (see DispatchShares), except
where an effect states what the host does less for operations on smaller tensors. Upper bounds count what the
change may spare besides: cores that less input leaves to the rest (``_freed``), and the profiler's cost where it
is not known which part of the step has it (see TracingCost); half of the rest is left at least.

On a CPU run input and compute share the cores, so a step is never shorter than what all cores together
have left to do. And no operation gets faster than the memory delivers its bytes (see Roofline).

Without an effect the formula gives the measured step, because its terms are the measured exposed times.
What it must guess is how long the input takes when nobody waits for it: the pipeline's own times say
that, and where a waiting trainer contradicts them the difference is the model's residual.
"""

from tfdoctor.facts.input.input_pipeline import InputPipeline, PipelineSegment
from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.cores import SHARED, Cores
from tfdoctor.facts.operations.operations import Roofline
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.dispatch import DispatchShares
from tfdoctor.facts.step_time.breakdown import READY_MS, UNKNOWN, Breakdown, TracingCost
from tfdoctor.facts.steps.step import bounds_of
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps
from tfdoctor.facts.steps.untraced_pace import DISTORTED, MOSTLY_TRACING, slowdown
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.kinds import TRACED_LONGER

# Beyond this share of the step the model explains too little: savings are estimates, which the report says.
TRUSTED_RESIDUAL = 0.10
# Shares of the step. A trainer that waits for less than the first keeps up with its input; between the two it may
# be the hand-over of a batch that lies ready, unless the input's own time comes near to the step's.
WAITING, PLAIN_WAIT = 0.02, 0.05
# The stages that input made beside the step overlaps.
REST = tuple(stage for stage in Stage if stage is not Stage.INPUT)
# Ms that tracing may add to each element of a stage, which is an event: 0.0032 ms of CPU for a row of three arrays
# (from_tensor_slices), 0.0004 for a number (Dataset.range), on two busy cores of an EPYC, TensorFlow 2.21.
ELEMENT_MS = 0.003
DOUBTFUL = 0.1  # Share of the slowest input work from which the profiler's part of it is worth a doubt
NEAR = 0.5  # Share of the step from which an input's own time may be what a short wait is for


class StepModel(Record, kw_only=True):
    """A step's stages, in ms per training step.

    ``exposed`` sums to the step. ``segments`` are the input pipeline's; empty when it is not known
    how batches are made. ``host_work`` is the host's work including what the device's hides.
    ``floors`` has the least time that an operation of the device can take, in ms, by its name.
    """

    device: DeviceKind
    exposed: Mapping[str, float]
    segments: tuple[PipelineSegment, ...] = ()
    host_work: float = 0.0
    cores: Cores | None = None  # None is unknown
    input_ms: float = 0.0  # the input's work in thread-ms per step: what it takes of the cores
    floors: Mapping[str, float] = field(default_factory=dict)
    dispatch: DispatchShares | None = None  # None: the host works beside the device
    slowdown: float = 1.0  # of the training call by being traced
    tracing: TracingCost | None = None  # of slowed steps: then the parts are without it
    elements: float = 0.0  # per step, of the slowest input work that overlaps it

    @classmethod
    def measure(  # noqa: PLR0913, PLR0917 - it needs all the facts that it names
        cls,
        breakdown: Breakdown,
        device: Device,
        activity: Activity,
        steps: Steps,
        pipeline: InputPipeline | None,
        cores: Cores | None,
        roofline: Roofline | None,
        dispatch: DispatchShares | None,
        recording: Recording,
        cost: TracingCost | None,
    ) -> Self:
        """Take the stages' exposed time from the breakdown, the input's from its pipeline."""
        slower, spent = slowdown(recording, steps), steps.steady_steps
        tracing = cost if slower >= TRACED_LONGER else None
        stages, segments = (pipeline.stages, pipeline.segments) if pipeline else ((), ())
        ahead = [segment for segment in segments if segment.overlapped]
        slowest = max(ahead, key=lambda segment: segment.ms).stages if ahead else {}
        if tracing:  # without the profiler's cost of their calls, each of which is an event
            cost_ms = {stage.path: stage.calls * tracing.each_ms for stage in stages}
            own = [tracing.left(one.ms, sum(cost_ms[path] for path in one.stages)) for one in segments]
            segments = tuple(map(_stretched, segments, own))
        dispatched = int(activity.dispatch.covered(*bounds_of(spent)).sum()) / PS_PER_MS
        return cls(
            device=device.kind,
            exposed=tracing.untraced if tracing else breakdown.median,
            segments=segments,
            host_work=max(breakdown["host"], dispatched / sum(step.calls for step in spent)),
            cores=cores,
            input_ms=sum(stage.work_ms for stage in stages),
            floors=roofline.floors if roofline else {},
            dispatch=dispatch,
            slowdown=slower,
            tracing=tracing,
            elements=sum(stage.calls for stage in stages if stage.path in slowest),
        )

    @property
    def step_ms(self) -> float:
        """The step time in ms: as measured, or without the profiler's cost where ``tracing`` is known."""
        return sum(self.exposed.values())

    @property
    def residual(self) -> float:
        """How much longer a waiting trainer's input takes than its stages' own times explain, in ms."""
        if not self.waits or not self.slowest:
            return 0.0
        if not self._limits and self.slowest < NEAR * self.step_ms:
            return self._wait
        return self.step_ms - self._serial - self.slowest

    @property
    def _serial(self) -> float:
        return min(self.exposed[Stage.INPUT], sum(one.ms for one in self.segments if not one.overlapped))

    @property
    def waits(self) -> bool:
        """Whether the trainer waits for input that overlaps the step."""
        if self._wait <= max(READY_MS, WAITING * self.step_ms):
            return False
        return self._wait >= PLAIN_WAIT * self.step_ms or self.slowest >= NEAR * self.step_ms

    @property
    def _wait(self) -> float:
        """The trainer's wait for input that overlaps the step, in ms."""
        return self.exposed[Stage.INPUT] - self._serial

    @property
    def slowest(self) -> float:
        """The own time of the slowest input work that overlaps the step, in ms."""
        return max((segment.ms for segment in self.segments if segment.overlapped), default=0.0)

    @property
    def _limits(self) -> bool:
        """Whether a waiting trainer's input sets the pace of the step.

        It does where its own time, or the wait alone, is as long as the rest of the step. A shorter wait for
        a shorter input is for something else: a thread that wakes up late, uneven batches, a queue too short.
        """
        return max(self.slowest, self._wait) >= self.step_ms - self.exposed[Stage.INPUT]

    @property
    def doubts_input(self) -> bool:
        """Whether the input may keep up with the step where its elements are not traced.

        The untraced step does not tell: it is as long as the input, or as the rest, whichever is longer. Where
        tracing distorts the steps, its cost is taken off already.
        """
        if self.tracing and self.slowdown > DISTORTED:
            return False
        profiled = ELEMENT_MS * self.elements
        large = profiled >= DOUBTFUL * self.slowest > 0.0
        shorter = self.slowest - profiled < self.step_ms - self.exposed[Stage.INPUT]
        return large and shorter and (self._limits or not self.waits)

    @property
    def trusted(self) -> bool:
        """Whether the formula explains the measured step, and the step is the run's own."""
        return abs(self.residual) <= TRUSTED_RESIDUAL * self.step_ms and self.slowdown <= DISTORTED

    @property
    def distorted(self) -> bool:
        """Whether the profiler distorted the steps: what it slows most then appears as the bottleneck.

        Where its cost is known (see TracingCost) and not most of the step, the steps are those without it, and
        savings are estimates.
        """
        return self.slowdown > (MOSTLY_TRACING if self.tracing else DISTORTED)

    def kept(self, part: str) -> float:
        """Return the share of a part's traced time that is not the profiler's, 0 to 1."""
        return self.tracing.kept(part) if self.tracing else 1.0

    @property
    def traced(self) -> Mapping[str, float]:
        """The parts as they were traced, in ms per step: what effects and the facts of a trace are in."""
        return self.tracing.traced if self.tracing else self.exposed

    def predict(self, effects: Iterable[Effect]) -> float:
        """Return the step time after these effects, in ms; their order does not matter."""
        by_stage = _grouped(effects, "stage")
        if not by_stage:
            return self.step_ms
        floor = max(0.0, self.exposed.get(UNKNOWN, 0.0), self._cores_bound(by_stage))
        inputs = by_stage.get(Stage.INPUT, [])
        moved = any(effect.overlaps for effect in inputs)
        overlapping, serial = [0.0], [0.0]  # the times of input beside the rest, and after it
        for segment in self._calibrated():
            times = overlapping if segment.overlapped or moved else serial
            times.append(_segment_ms(segment, inputs))
        rest = self._rest(by_stage) - self._freed(by_stage)
        predicted = max(floor, max(rest, *overlapping) + sum(serial))
        if self.tracing and any(effect.bound is Bound.AT_MOST for own in by_stage.values() for effect in own):
            predicted = self.tracing.least(predicted)

        def removes(effect: Effect) -> bool:
            shares = self.device == DeviceKind.CPU and effect.bound is Bound.AT_MOST
            return bool(effect.subject) or not shares or effect.scales < SHARED

        # That each change to the input leaves its cores to a CPU's compute, and that the profiler slowed it,
        # together leave at least half of the work that no change removes.
        stays = SHARED * self._rest({stage: [*filter(removes, own)] for stage, own in by_stage.items()})
        return max(predicted, stays)

    def predict_parts(self, effects: Iterable[Effect]) -> dict[str, float]:
        """Return the parts of the step after these effects, in ms; they sum to what ``predict`` returns.

        What the step takes beyond its own work is a wait for input; where less input work leaves cores to the
        step, all of its own work gets shorter alike.
        """
        effects = tuple(effects)
        total, own = self.predict(effects), self._rest_parts(_grouped(effects, "stage"))
        work = sum(own.values())
        if total < work:
            own = {part: value * total / work for part, value in own.items()}
        return {**own, Stage.INPUT: max(0.0, total - work)}

    @property
    def busy_share(self) -> float | None:
        """The share of its usable cores that the run kept busy, 0 to 1; None is unknown."""
        return self.cores.share if self.cores else None

    def guesses_cores(self, effects: Iterable[Effect]) -> bool:
        """Whether effects need free cores on a CPU run, and how many there are is not certain."""
        uncertain = self.device == DeviceKind.CPU and not (self.cores and self.cores.certain)
        return uncertain and any(effect.overlaps or effect.spreads for effect in effects)

    def frees_cores(self, effects: Iterable[Effect]) -> bool:
        """Whether effects remove work that competes for a CPU's cores, and what that gains is not counted.

        How much faster the step's own work gets then is only bounded (see ``_freed`` and CpuContention): up to
        a fifth of the step in benchmarks/accuracy.
        """
        effects = tuple(effects)
        stated = any(one.stage is Stage.DEVICE and not one.subject for one in effects)
        reduces_input = any(one.stage is Stage.INPUT and one.scales < 1 and not one.spreads for one in effects)
        uncounted = reduces_input and not stated and self.device == DeviceKind.CPU
        return uncounted and not self._freed(_grouped(effects, "stage"))

    def _cores_bound(self, effects: Mapping[str, list[Effect]]) -> float:
        """Return how long all cores together are busy, in ms; for CPU runs.

        Work that overlaps the step, or that more threads share, keeps the cores as busy as before. The step's own
        work keeps them busy for as long as it takes, at most: else they are the input's, as in worker processes.
        """
        if self.device != DeviceKind.CPU or self.cores is None:
            return 0.0
        remaining = {
            at: [one for one in own if not one.overlaps and not one.spreads] for at, own in effects.items()
        }
        busy, whole = self.cores.share * self.step_ms, self._rest({})  # in ms with all cores at work, and alone
        inputs = max(min(busy, self.input_ms / self.cores.usable), busy - whole)
        left = self._rest(remaining) / whole if whole else 1.0
        return min(self.step_ms, inputs * self._input_left(remaining) + (busy - inputs) * left)

    def _input_left(self, effects: Mapping[str, list[Effect]]) -> float:
        now = sum(segment.ms for segment in self.segments)
        input_effects = effects.get(Stage.INPUT, [])
        if not now:
            return _factor(effect for effect in input_effects if not effect.subject)
        return sum(_segment_ms(segment, input_effects) for segment in self.segments) / now

    def saving(self, effects: Iterable[Effect]) -> float:
        """Return the ms that these effects save per step; negative when they cost time."""
        return self.step_ms - self.predict(effects)

    def saving_on_own_cores(self, effects: Iterable[Effect]) -> float:
        """Return the ms that effects would save if the rest of the step shared no cores with the input."""
        own = [effect for effect in effects if effect.subject or effect.stage is Stage.INPUT]
        return replace(self, cores=self.cores and replace(self.cores, sampled=False)).saving(own)

    @property
    def without_input(self) -> Self:
        """The same step, if no input work overlapped it."""
        return replace(self, segments=())

    def _freed(self, effects: Mapping[str, list[Effect]]) -> float:
        """Return by how much less input work may shorten the rest of the step on a CPU, in ms.

        Counted for upper bounds only, where the cores are crowded, and no effect states what the compute gains.
        """
        inputs = effects.get(Stage.INPUT, [])
        bounds = [one for one in inputs if one.bound is Bound.AT_MOST and not one.overlaps and not one.spreads]
        stated = any(not effect.subject for effect in effects.get(Stage.DEVICE, []))
        cores = self.cores if self.device == DeviceKind.CPU else None
        if not bounds or stated or cores is None or not (cores.sampled and cores.crowded):
            return 0.0
        beside = 1.0 - self.exposed[Stage.INPUT] / self.step_ms
        gone = (1.0 - self._input_left({Stage.INPUT: bounds})) * self.input_ms
        own = self._rest(effects) - self.exposed[Stage.BETWEEN]
        return max(0.0, min(gone * beside / cores.usable, own * SHARED))

    def _rest(self, effects: Mapping[str, list[Effect]]) -> float:
        return sum(self._rest_parts(effects).values())

    def _rest_parts(self, effects: Mapping[str, list[Effect]]) -> dict[str, float]:
        """Return the parts of the step without its input, in ms; the host's has what the device no longer hides."""
        work: dict[str, float] = {stage: self._left_ms(stage, effects.get(stage, [])) for stage in REST}
        stated = any(effect.narrows for effect in effects.get(Stage.HOST, []))
        if self.dispatch and not stated:
            work[Stage.HOST] *= self.dispatch.left(effects.get(Stage.DEVICE, []))
        if self.device != DeviceKind.CPU:
            # Launching is serial, so what of it overlaps the device's work stays when that shrinks. A host that
            # leaves the device idle for a time is assumed to launch for at least as long while the device works:
            # faster kernels only wait longer. Where the device idles longer than it works, the host alone limits.
            host, device = self.exposed[Stage.HOST], self.exposed[Stage.DEVICE]
            hidden = min(device, max(self.kept(Stage.HOST) * self.host_work - host, host))
            work[Stage.HOST] += max(0.0, hidden - work[Stage.DEVICE])
        return {**work, UNKNOWN: self.exposed.get(UNKNOWN, 0.0)}

    def _left_ms(self, stage: Stage, effects: Iterable[Effect]) -> float:
        """Return a stage's work after effects on the whole of it or on subjects within it.

        Effects on one subject multiply, so that two of them never save the same milliseconds twice. They do not go
        below the subject's floor, which is zero where an effect removes it, and lower where its tensors shrink.
        """
        subjects = _grouped(effects, "subject")
        whole, saved = _factor(subjects.pop("", [])), 0.0
        for subject, own in subjects.items():
            taken = self.kept(stage) * max((effect.of.value for effect in own if effect.of), default=0.0)
            removed = any(effect.scales == 0.0 for effect in own)  # what is left may underflow to 0
            narrowed = _factor(effect for effect in own if effect.narrows)
            least = 0.0 if removed else self.floors.get(subject, 0.0) * narrowed
            saved += taken - max(taken * _factor(own), min(taken, least))
        return max(0.0, self.exposed[stage] - saved) * whole

    def _calibrated(self) -> tuple[PipelineSegment, ...]:
        """Return the segments, scaled to agree with the trainer's measured wait.

        A trainer that waits for a segment that sets its pace runs at that pace: the segment then takes the
        whole step. A segment that does not set the pace overlaps the step, and the wait for it follows the
        step: less of its work shortens both. The pipeline of a trainer that does not wait is at least as fast
        as the rest of the step.
        """
        ahead = [segment for segment in self.segments if segment.overlapped and segment.ms]
        alone = [segment for segment in self.segments if not segment.overlapped and segment.ms]
        waits = bool(ahead) and self.waits
        serial = self._serial if waits else self.exposed[Stage.INPUT]  # without segments, of unknown origin
        pace, own = self.step_ms - serial, sum(segment.ms for segment in alone)
        unknown = PipelineSegment({"": serial}, overlapped=False)
        made = [_stretched(segment, serial / own) for segment in alone] or [unknown]
        slowest = max(ahead, key=lambda segment: segment.ms) if waits else None
        made += [_stretched(one, min(one.ms, pace) / one.ms) for one in ahead if one is not slowest]
        if slowest and self._limits:
            made.append(_stretched(slowest, pace / slowest.ms))
        elif slowest:
            made += [slowest, replace(_stretched(slowest, self._wait / slowest.ms), overlapped=False)]
        return tuple(made)


def _grouped(effects: Iterable[Effect], by: str) -> dict[str, list[Effect]]:
    return by_key((getattr(effect, by), effect) for effect in effects)


def _stretched(segment: PipelineSegment, factor: float) -> PipelineSegment:
    return PipelineSegment({path: ms * factor for path, ms in segment.stages.items()}, segment.overlapped)


def _segment_ms(segment: PipelineSegment, effects: Iterable[Effect]) -> float:
    """Return the time of a segment after the effects on the input or on stages of it, in ms."""
    concerning = [effect for effect in effects if not effect.subject or effect.subject in segment.stages]
    return sum(
        ms * _factor(effect for effect in concerning if effect.subject in ("", path))
        for path, ms in segment.stages.items()
    )


def _factor(effects: Iterable[Effect]) -> float:
    """Return the product of what effects scale by, the same in whichever order they come."""
    return prod(sorted(effect.scales for effect in effects), start=1.0)
