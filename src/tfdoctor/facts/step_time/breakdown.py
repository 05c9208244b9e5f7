"""Where a step's time goes; the parts sum to the step. And what of it the profiler itself takes.

Each instant of a step belongs to exactly one part, the first of this list that is at work: device,
collective, transfer, input. The rest of the call is the host's, and the time after the call lies
between the steps. So a wait for input counts only while nothing else happens: it is *exposed*.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.step import bounds_of
from tfdoctor.facts.steps.steps import FEW_STEPS, PS_PER_MS, SteadySteps, Step, Steps
from tfdoctor.facts.steps.untraced_pace import slowdown
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.kinds import TRACED_LONGER
from tfdoctor.trace.names import INPUT_THREAD

UNKNOWN = "unknown"  # The part of a step that the trace does not explain
PARTS = (*Stage, UNKNOWN)
# The parts that a trace shows at work, by priority; the rest is Python's.
WORKING = (Stage.DEVICE, Stage.COLLECTIVE, Stage.TRANSFER, Stage.INPUT)
INPUT_SHARE = 0.05  # Share of the step from which xprof's analyzer and DLProf call a run input-bound
# Per step. Handing over a batch that is ready costs tf.data about 0.1 ms: on steps of a millisecond that is above 5
# %, yet nothing waits.
READY_MS = 0.2
NO_WAIT = 0.005  # Share of the step below which a wait rounds to nothing
# Ms per event that the profiler takes at most. Called 100 times with and without it, the same function took 0.6 to
# 1.1 us of CPU time more for each event (an LSTM, 1,900 to 2,300 events a call, TensorFlow 2.21, a busy Xeon).
MOST_MS = 0.0011
LEAST = 0.1  # Share of a part that remains in any case: events are counted, and their cost is a mean


class Breakdown(Record):
    """Where the steps' time went, in ms per training step.

    ``steps`` has one mapping of part to ms for each of Steps.steps, summing to the step.
    ``median`` applies the steady steps' shares to the median step, so that it sums to it; to the mean step where
    input stalls some steps again and again (see Steps.usual_ms).
    """

    steps: tuple[Mapping[str, float], ...]
    median: Mapping[str, float]
    unseen_input: str = ""  # why a wait for input does not show in the trace; "" where it would
    slowed: bool = False  # by tracing, so much that the report is about the step without its cost

    @classmethod
    def measure(
        cls, steps: Steps, activity: Activity, device: Device, framework: Framework, recording: Recording | None
    ) -> Self:
        """Divide every step: each part covers some of it."""
        parts, (starts, ends) = parts_of(steps.steps, activity, device), bounds_of(steps.steps)
        calls = np.array([step.calls for step in steps.steps])
        covered = {str(part): parts.get(part, Intervals()).covered(starts, ends) for part in PARTS}
        times = {part: ps / (PS_PER_MS * calls) for part, ps in covered.items()}
        columns = (column.tolist() for column in times.values())
        rows = tuple(dict(zip(times, row, strict=True)) for row in zip(*columns, strict=True))
        weights = calls.astype(float) * steps.steady
        totals = {part: float(weights @ time) for part, time in times.items()}
        whole = sum(totals.values())
        scale = steps.usual_ms / whole if whole else 0.0
        slowed = recording is not None and slowdown(recording, steps) >= TRACED_LONGER
        return cls(rows, {part: total * scale for part, total in totals.items()}, framework.no_pipeline, slowed)

    @classmethod
    def of(cls, **parts: float) -> Self:
        """Return the breakdown of even steps, for examples and tests."""
        row = {str(part): parts.get(str(part), 0.0) for part in PARTS}
        return cls((row,) * (FEW_STEPS + 1), row)

    def __getitem__(self, part: str) -> float:
        return self.median[part]

    @property
    def each_step(self) -> str:
        """Which steps a sentence about their time is true of: "each step", or only those that were traced."""
        if len(self.steps) > FEW_STEPS:
            return "each traced step" if self.slowed else "each step"
        return "the traced step" if len(self.steps) == 1 else "each of the two traced steps"

    @property
    def waits_for_input(self) -> bool:
        """Whether the exposed wait for input is worth reporting."""
        wait = self.median[Stage.INPUT]
        return wait >= INPUT_SHARE * self.step_ms and wait >= READY_MS

    @property
    def little_wait(self) -> str:
        """A sentence for steps of which ``waits_for_input`` is False: "the step does not wait for input"."""
        share = self.share(self.median[Stage.INPUT])
        if share < NO_WAIT:
            return "the step does not wait for input"
        return f"the step waits only {percent(share)} of its time for input"

    @property
    def step_ms(self) -> float:
        """The time of the step, in ms: Steps.usual_ms."""
        return sum(self.median.values())

    def share(self, time_ms: float) -> float:
        """Return a time as a share of the step; 0 where steps have no duration."""
        return time_ms / self.step_ms if self.step_ms else 0.0


def working(activity: Activity, *stages: Stage) -> Intervals:
    """Return when any of some stages was at work, or a batch was awaited."""
    return Intervals.any_of([activity.wait, *map(activity.of, stages)])


def parts_of(steps: Iterable[Step], activity: Activity, device: Device) -> dict[str, Intervals]:
    """Return when each part of some steps was at work, in ps: disjoint intervals that cover the steps.

    The rest of the calls is unknown when the device was not recorded, or when tf.data itself runs the training,
    because its wait for the next batch cannot be separated then.
    """
    steps = tuple(steps)
    whole = Intervals.union((step.start_ps, step.end_ps) for step in steps)
    at_work = {stage: activity.of(stage) for stage in WORKING}
    at_work[Stage.INPUT] |= activity.wait
    rest = UNKNOWN if device.missing or activity.within_data else Stage.HOST
    calls = Intervals.union((step.start_ps, step.call_end_ps) for step in steps)
    parts = exclusive({**at_work, rest: calls, Stage.BETWEEN: whole})
    return {str(part): spans & whole for part, spans in parts.items()}


class TracingCost(Record):
    """The parts of a step as traced and as untraced, in ms per training step (see Breakdown).

    Each event takes the profiler about as long, mostly before its start and after its end: its cost belongs to the
    part in which it begins. ``each_ms`` is that cost, from the difference between traced and untraced steps.
    What the events do not explain slows all parts alike. ``untraced`` sums to the untraced step.
    """

    traced: Mapping[str, float]
    untraced: Mapping[str, float]
    each_ms: float
    scale: float = 1.0  # of what the events do not explain

    @classmethod
    def measure(
        cls, trace: Trace, steps: Steps, activity: Activity, breakdown: Breakdown, recording: Recording
    ) -> Self:
        """Count the events that begin in each part of the steady steps, without those of threads beside the step.

        Raises:
            Unavailable: no step was timed without the profiler, or tracing did not slow the steps.
        """
        slower = slowdown(recording, steps)
        if slower <= 1.0:
            raise Unavailable("no steps were timed without tracing that took less time than the traced ones")
        steady = SteadySteps.of(steps)
        layers = {str(stage): activity.of(stage) for stage in Stage if stage in activity.stages}
        layers[Stage.INPUT] = layers.get(Stage.INPUT, Intervals()) | activity.wait
        counts = dict.fromkeys(map(str, PARTS), 0.0)
        for line in trace.host_lines:
            before = line.start_ps[steady.holds(line.start_ps)] - 1
            left = np.ones(len(before), bool)
            for part, spans in layers.items():
                inside = left & spans.holds(before)
                counts[part] += float(inside.sum())
                left &= ~inside
            if not line.name.startswith(INPUT_THREAD):
                called = left & steady.calls.holds(before)
                counts[Stage.HOST] += float(called.sum())
                counts[Stage.BETWEEN] += float((left & ~called).sum())
        return cls.of(breakdown.median, {part: n / steady.rounds for part, n in counts.items()}, slower)

    @classmethod
    def of(cls, traced: Mapping[str, float], events: Mapping[str, float], slower: float) -> Self:
        """Take the cost of the events from the parts, then scale the parts to the untraced step."""
        step_ms, number = sum(traced.values()), sum(events.values())
        target = step_ms / slower
        each_ms = min(MOST_MS, (step_ms - target) / number) if number else 0.0
        without = {part: max(LEAST * ms, ms - each_ms * events.get(part, 0.0)) for part, ms in traced.items()}
        scale = target / sum(without.values()) if target else 1.0
        return cls(traced, {part: part_ms * scale for part, part_ms in without.items()}, each_ms, scale)

    def least(self, left_ms: float) -> float:
        """Return how short the rest of a step may be in truth, of which ``left_ms`` are predicted.

        Which part has the cost that the events do not explain is not known: the rest has it all at worst, and at
        least half of what is predicted remains.
        """
        if self.scale >= 1.0:
            return left_ms
        unexplained = (1.0 / self.scale - 1.0) * sum(self.untraced.values())
        return max(left_ms / 2, left_ms / self.scale - unexplained)

    @staticmethod
    def left(traced_ms: float, cost_ms: float) -> float:
        """Return the share of traced work, 0 to 1, that remains without the cost of its events."""
        return max(LEAST, 1.0 - cost_ms / traced_ms) if traced_ms else 1.0

    def kept(self, part: str) -> float:
        """Return the share of a part's traced time that remains without the profiler."""
        return self.untraced[part] / self.traced[part] if self.traced[part] else 1.0
