"""The training steps of the whole run: how long each took, the long ones, and which the traced window is like."""

from statistics import median

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_course import MIDDLE, StepDurations, main_loop, main_steps, sampled, whole_run
from tfdoctor.facts.phases.run_phases import ENOUGH, RunPhases
from tfdoctor.facts.phases.run_pieces import AROUND, lines_that_train
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.steps.untraced_pace import DISTORTED, FASTEST
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.run_log import BucketSteps, LongStep
from tfdoctor.terms.run_time import LongStepTime, PhaseLine

# Long steps from which a period can be told from chance, and the share of their distances that must equal it. Of
# all choices of three steps among 20, 8 % are equally far apart, of four 1 %; five of 20 are no outliers.
OCCASIONS, REGULAR = 4, 0.8
WITHIN = 1  # Steps by which a distance may differ: a checkpoint that is due in a step may run after the next one
# Times the usual traced step within which a step is like it; from 1.5 on the recorder tells it as a long one.
LIKE = (0.67, 1.5)
MOST = 0.5  # Share of the samples in long steps from which they are like the traced ones where these wait
ENOUGH_STEPS = 5  # Steps from which a median is one (see Steps.too_few)


class LongSteps(LongStepTime, kw_only=True):
    """Long steps of the run, whose lines others measure."""

    first_median_ms: float = 0.0  # of what first steps take beyond usual: one slow first epoch does not move it


def long_steps(steps: Sequence[LongStep]) -> LongSteps | None:
    """Add up long steps; None where there is none."""
    if not steps:
        return None
    beyond = [max(0.0, step.ms - step.usual_ms) for step in steps]
    first = [ms for step, ms in zip(steps, beyond, strict=True) if step.first]
    numbers, every = sorted({step.number for step in steps if not step.first}), None
    if len(numbers) >= OCCASIONS:
        gaps = [after - before for before, after in pairwise(numbers)]
        usual = round(median(gaps))
        regular = sum(abs(gap - usual) <= WITHIN for gap in gaps) >= REGULAR * len(gaps)
        every = usual if usual > WITHIN + 1 and regular else None
    return LongSteps(
        count=len(steps), ms=sum(step.ms for step in steps), beyond_ms=sum(beyond), every=every,
        first=len(first), first_beyond_ms=sum(first), first_median_ms=median(first) if first else 0.0,
    )  # fmt: skip


class LongLine(PhaseLine, kw_only=True):
    """A line of the user's in long steps, and what it does; time in ms of the run."""

    work: RunWork = RunWork.OTHER
    trains: bool = False  # it is the call that trains, which each step is in: it names no cause

    @property
    def may_wait(self) -> bool:
        """Whether the stack is often where a step waits for input: at the call that trains, or in the input."""
        return self.samples >= ENOUGH and (self.trains or self.work is RunWork.INPUT)

    @property
    def sure(self) -> bool:
        """Whether there are enough samples to name it as the cause."""
        return self.at is not None and self.samples >= ENOUGH and not self.trains


class RunLongLines(Record):
    """The lines of long steps, those with most time first; their time begins at 1.5 times the usual step."""

    lines: tuple[LongLine, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Add up the samples of each line.

        Raises:
            Unavailable: the run was not recorded, or no long step was sampled.
        """
        log, place = recording.run, Places.of(recording)
        if log is None:
            raise Unavailable("the run outside of the traced steps was not recorded")
        made = {one.id: (one.at, one.name) for one in log.calls.values() if one.call is RunCall.FUNCTION}
        seen = ((one, made.get(one.call, (None, "")), ms, n) for one, ms, n in sampled(log) if one.long)
        # A compiled function has a name of the user's, where its class in TensorFlow says nothing.
        long = [
            ((place(one.at), (of[1] if of[0] == one.at else "") or one.calls or "", one.work), ms, n)
            for one, of, ms, n in seen
        ]
        counts = summed((key, number) for key, _, number in long)
        training = {place(at) for at in lines_that_train(recording)}
        lines = [
            LongLine(
                at=at, ms=ms, samples=int(counts[at, calls, work]), calls=calls, work=work,
                trains=at in training and work in (RunWork.OTHER, RunWork.MODEL),
            )
            for (at, calls, work), ms in summed((key, ms) for key, ms, _ in long).items()
            if ms
        ]  # fmt: skip
        if not lines:
            raise Unavailable("no step that takes long was sampled")
        return cls(tuple(lines))

    @property
    def ms(self) -> float:
        """The time of all lines."""
        return sum(line.ms for line in self.lines)

    @property
    def waiting(self) -> float:
        """The share of the time in lines where steps wait for input, 0 to 1: there no other line is the cause."""
        return sum(line.ms for line in self.lines if line.may_wait) / self.ms if self.ms else 0.0


class RunSteps(Record, kw_only=True):
    """All training steps, traced or not, of the loop with the most time; times in ms per step.

    Calls that trace a function are none of them (see RunTraces). Where input comes in bursts, every second or third
    step takes long, and ``long`` has only those that took much longer than the traced ones.
    ``window_share`` is the share of the time of all steps that is in steps like the traced ones (between 0.67 and
    1.5 times their median, or divided into lines as near them), None without a window; of all loops' steps where
    those of another loop were traced.
    ``wait_longer`` says that the traced steps wait for input more than they do anything else, and that the stack in
    long ones is where they wait: then these are like them, too.
    """

    at: Location | None
    source: str
    count: int
    total_ms: float  # from a call to the next one, without epochs' boundaries
    mean_ms: float
    median_ms: float
    p10_ms: float
    p90_ms: float
    long: LongSteps | None = None
    traced_ms: float | None = None  # median of the traced steps
    window_share: float | None = None
    loops: int = 1  # that train, of which this one takes longest
    wait_longer: bool = False

    @classmethod
    def measure(
        cls, recording: Recording, in_trace: Steps | None, breakdown: Breakdown | None, seen: RunLongLines | None,
        phases: RunPhases,
    ) -> Self:  # fmt: skip
        """Add up the steps of the log.

        Raises:
            Unavailable: the run as a whole was not recorded, it trains nothing, or a graph holds the loop: what the
                log counts then are calls of many steps.
        """
        log = whole_run(recording)
        source, at = main_loop(log)
        if source == StepSource.GRAPH_LOOP:
            raise Unavailable("a loop inside a tf.function runs the steps, so they are not seen")
        steps = main_steps(log)
        times = StepDurations.of(*steps)
        count, total = sum(one.steps for _, one in steps), sum(one.ms for _, one in steps)
        if not count or not times.count:
            raise Unavailable("no training step was seen in the run")
        bursts = in_trace.steps if in_trace and in_trace.in_bursts else ()
        of_main = any(one.traced for _, one in steps)  # else those of another loop may be traced
        own = steps if of_main else log.steps
        traced, share = _window(own, StepDurations.of(*own), recording.manifest, in_bursts=bool(bursts))
        slowest = max((step.total_ms for step in bursts), default=0.0)
        long = long_steps([step for step in log.long_steps if step.ms > LIKE[1] * slowest])
        parts = breakdown.median if breakdown and breakdown.waits_for_input else {}
        waits = bool(parts) and parts[Stage.INPUT] == max(parts.values())  # more than anything else
        waiting = seen.waiting if seen and long and waits and of_main else 0.0
        if share is not None:
            share = min(1.0, max(share, phases.alike or 0.0) + (waiting * long.ms / total if long else 0.0))
        return cls(
            at=Places.of(recording)(at), source=source, count=count, total_ms=total, mean_ms=total / count,
            median_ms=times.quantile(MIDDLE), p10_ms=times.quantile(0.1), p90_ms=times.quantile(0.9), long=long,
            traced_ms=traced if of_main else None, window_share=share, wait_longer=waiting >= MOST,
            loops=len({(one.source, one.at) for _, one in log.steps}),
        )  # fmt: skip

    @property
    def first_share(self) -> float:
        """What long first steps of passes take beyond usual ones, by their median, of all steps' time, 0 to 1."""
        recur = self.long is not None and self.long.first > 1 and self.total_ms > 0
        return min(1.0, self.long.first * self.long.first_median_ms / self.total_ms) if self.long and recur else 0.0


def _window(
    steps: Sequence[tuple[int, BucketSteps]], times: StepDurations, manifest: Manifest | None, *, in_bursts: bool
) -> tuple[float | None, float | None]:
    """Return the median traced step, and the share of all time that is in steps like it; None without a window.

    The profiler only makes steps slower. Where traced ones are slower than the untraced ones around them, those say
    what they take; but where the fastest quarter of the traced ones is not, slow and fast steps are mixed, and a
    step is like them that is like any of them.
    """
    traced = sorted({number for number, one in steps if one.traced})
    inside = times.where(np.isin(times.bucket, traced))
    if not traced or not inside.count:
        return None, None
    near = (times.bucket >= traced[0] - AROUND) & (times.bucket <= traced[-1] + AROUND)
    around = times.where(near & ~np.isin(times.bucket, traced))
    others = around if around.count >= ENOUGH_STEPS else times
    known = manifest.steps.untraced if manifest else None
    told = known.traced_ms if known is not None and known.of == "steps" else None
    median = told or inside.quantile(MIDDLE)
    untraced, own = others.quantile(MIDDLE), StepDurations.of(*(own for own in steps if own[1].traced))
    mixed = DISTORTED * untraced < median and own.quantile(FASTEST) <= untraced
    usual = np.unique(own.ms) if in_bursts or mixed else np.array([min(median, untraced)])
    if not usual.any():
        return median, None
    # The share of the time of all steps that is in those like one of the usual ones.
    each, (low, high) = times.ms[:, np.newaxis], LIKE
    like = ((each >= low * usual) & (each <= high * usual)).any(axis=1)
    weights = times.ms * times.calls
    return median, float(weights[like].sum() / weights.sum())
