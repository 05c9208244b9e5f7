"""Where the training steps begin and end.

A step lasts from its own start to the start of the next one, so that the time between two calls
(callbacks, metrics, an epoch's end) belongs to the step before it and nothing is lost.

A shuffle buffer that is filled at the start of each pass, a file that is opened, or a generator that makes
several batches at once delays a few steps by much, again and again. Such steps are no accident: their wait is the
input's time, so the mean step counts. Where batches come in bursts, as from several workers, steps are short and
long in turn, and none is an outlier.
"""

from statistics import quantiles

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device, spans, work_lines
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Program, batches_of, line_of
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.graph_cycles import graph_calls
from tfdoctor.facts.steps.known_steps import find_steps
from tfdoctor.facts.steps.search import FEWEST
from tfdoctor.facts.steps.step import PS_PER_MS, Step, bounds_of, compilations
from tfdoctor.facts.timeline.host_events import trainer_waits
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.trace.names import FUNCTION_RUNS

__all__ = ["PS_PER_MS", "Step", "Steps"]

FEW_STEPS = 2  # Traced steps up to which nothing is known of a typical one: two have no middle
FEWEST_STEPS = 5  # With fewer steps a median says little: one late callback moves it
OUTLIER_IQRS = 3.0  # Tukey's far-out fence: three interquartile ranges above the third quartile
# An outlier takes at least this many times the median: very even steps have a tiny interquartile range.
OUTLIER_FLOOR = 1.3
# Share of a step's time from which it counts as compiling, and share of the steps below which such steps are the
# exception.
COMPILING = 0.5
MOSTLY = 0.5  # Share of a long step's time beyond the median that the wait for input takes at least
# Smallest share of the traced time that stalls take beyond other steps; step-outlier has the same limit.
SHARE = 0.05
# Times the mean of the short steps that the long ones take at least: the time of a batch varies by less.
BURSTS = 2.0
# Separate occasions from which stalls recur: one may be chance, and adjacent long steps are one occasion.
OCCASIONS = 2


class Steps(Record, dict=True):  # a long loop has tens of thousands: what is summed of them is kept
    """The training steps of one host's trace."""

    source: StepSource
    steps: tuple[Step, ...]
    steady: tuple[bool, ...]  # no outliers; those that the input stalls again and again are none
    program: str = ""  # whose runs are the steps, where they were found by XLA's programs
    stalled: tuple[bool, ...] = ()  # of the steady ones: long, because input stalls; () where none is
    in_bursts: bool = False  # short and long in turn: no outliers, and the median is of either kind

    @classmethod
    def measure(
        cls,
        trace: Trace,
        recording: Recording,
        device: Device,
        xla_programs: XlaPrograms,
        framework: Framework,
        program: Program | None,
    ) -> Self:
        """Find the steps: markers, else a device's step line, else cycles that train.

        Raises:
            Unavailable: the trace does not show, or not with certainty, where a step begins.
        """
        name, (source, steps) = find_steps(trace, recording, device, xla_programs, framework)
        seen = recording.manifest.steps if recording.manifest else None
        steps = [step for step in steps if not seen or step.number not in seen.discarded]
        if not steps:
            raise _none(trace, recording, framework)
        if seen and source is StepSource.MARKERS and seen.source in set(StepSource):  # else another version's name
            source = StepSource(seen.source)
        chosen = cls.of(steps, source, compilations(trace))
        if not chosen.median_ms > 0.0:
            raise Unavailable("the traced steps take no time: the trace is damaged", "record again")
        fed_by = line_of(program.feeding) if program else ()
        waits, untraced = trainer_waits(trace.host_lines), seen.untraced if seen else None
        apart_ms = recording.run.tracing_ms if recording.run else 0.0
        chosen = chosen.paying(waits, batches_of(fed_by), untraced, apart_ms)
        return replace(chosen, program=name)

    def paying(
        self, waits: Intervals, passing: float | None, untraced: UntracedSteps | None = None, apart_ms: float = 0.0
    ) -> Self:
        """Return these steps with those that input stalls again and again, which count as steady.

        ``passing`` are the training steps of one pass over the data; None is unknown. ``apart_ms`` is the time of
        untraced steps that are long for another reason.
        """
        stalled = self._stalls(waits, passing, untraced, apart_ms)
        if not stalled:
            bursts = self._bursts(waits, untraced)
            return replace(self, stalled=bursts, in_bursts=True) if bursts else self
        steady = tuple(a or b for a, b in zip(self.steady, stalled, strict=True))
        return replace(self, steady=steady, stalled=stalled)

    def _stalls(
        self, waits: Intervals, passing: float | None, untraced: UntracedSteps | None, apart_ms: float
    ) -> tuple[bool, ...]:
        """Return (steps,) which outliers wait for input, if they recur; () otherwise.

        A single occasion recurs if it is at the end of a pass, and the traced steps hold a whole pass. Stalls that
        take little of the steps' time are left out, and those that the untraced steps lack, or the begins of their
        passes.
        """
        usual_ms = self.median_ms
        stalled = self._waiting([not steady for steady in self.steady], waits, usual_ms)
        stalls = [step for step, is_stall in zip(self.steps, stalled, strict=True) if is_stall]
        beyond_ms = sum((step.total_ms - usual_ms) * step.calls for step in stalls)
        share = beyond_ms / sum(step.total_ms * step.calls for step in self.steps)
        if share < SHARE or (untraced and untraced.contradict(share, len(self.steps), usual_ms, apart_ms)):
            return ()
        begins = [at for at, (before, now) in enumerate(pairwise((False, *stalled))) if now > before]
        recur = len(begins) >= OCCASIONS
        if not recur and passing and self.count >= passing:
            # The last step of a pass, or the first of the next one.
            begun = self.steps[begins[0]].number
            at_end = any(place and place % ceil(passing) == 0 for place in (begun, begun + 1))
            longest_ms = max(step.total_ms for step in stalls)
            recur = at_end and not (untraced and untraced.begin_passes_as_usual(ceil(passing), longest_ms))
        return stalled if recur else ()

    def _bursts(self, waits: Intervals, untraced: UntracedSteps | None) -> tuple[bool, ...]:
        """Return (steps,) which steady steps are long because input comes in bursts; () where it does not.

        The wait for input is most of what the long steps take beyond the short ones, on several occasions, and the
        mean untraced step shows at least half of that.
        """
        times, among = self.times_ms, np.array(self.steady, np.bool_)
        ordered = np.sort(times[among])
        below, sums = np.arange(1, len(ordered)), np.cumsum(ordered)[:-1]
        if not len(below):
            return ()
        # The longest of the short steps, where those of two kinds differ most: Otsu's method.
        apart = (ordered.sum() - sums) / (len(ordered) - below) - sums / below
        long = among & (times > ordered[np.argmax(below * below[::-1] * apart**2)])
        short = among & ~long
        if not long.any() or not short.any() or times[long].mean() < BURSTS * times[short].mean():
            return ()
        usual_ms = float(np.median(times[short]))
        stalled = self._waiting(long.tolist(), waits, usual_ms)
        beyond_ms = times[np.array(stalled)].sum() - usual_ms * sum(stalled)
        begins = sum(now and not before for before, now in pairwise((False, *stalled)))
        if begins < OCCASIONS or beyond_ms < MOSTLY * (times[long] - usual_ms).sum():
            return ()
        mean_ms = untraced.mean_ms if untraced else None
        return () if mean_ms and mean_ms < usual_ms + beyond_ms / len(self.steps) / 2 else stalled

    def _waiting(self, long: Iterable[bool], waits: Intervals, usual_ms: float) -> tuple[bool, ...]:
        waited = waits.covered(*bounds_of(self.steps)).tolist()
        return tuple(
            is_long and waited_ps / PS_PER_MS / step.calls >= MOSTLY * (step.total_ms - usual_ms)
            for step, is_long, waited_ps in zip(self.steps, long, waited, strict=True)
        )

    @classmethod
    def of(
        cls, steps: Iterable[Step], source: StepSource = StepSource.MARKERS, compiling: Intervals | None = None
    ) -> Self:
        """Collect steps and find the outliers, and the few steps in which XLA mostly compiled."""
        every, spans = tuple(steps), compiling or Intervals()
        starts, ends = bounds_of(every)
        apart = (spans.covered(starts, ends) >= COMPILING * np.maximum(1, ends - starts)).tolist()
        if sum(apart) >= COMPILING * len(every):
            apart = [False] * len(every)
        times = [step.total_ms for step, compiled in zip(every, apart, strict=True) if not compiled]
        fence = inf
        if len(times) >= 4:  # enough for quartiles  # noqa: PLR2004
            low, middle, high = quantiles(times, method="inclusive")
            fence = max(high + OUTLIER_IQRS * (high - low), OUTLIER_FLOOR * middle)
        steady = (step.total_ms <= fence and not compiled for step, compiled in zip(every, apart, strict=True))
        return cls(source, every, tuple(steady))

    @cached_property
    def steady_steps(self) -> tuple[Step, ...]:
        """The steps that are no outliers."""
        return tuple(step for step, steady in zip(self.steps, self.steady, strict=True) if steady)

    @cached_property
    def steady_spans(self) -> Intervals:
        """When these were under way."""
        return Intervals((step.start_ps, step.end_ps) for step in self.steady_steps)

    @cached_property
    def times_ms(self) -> NDArray[np.float64]:
        """The time of a training step in each of (n,) calls."""
        return np.array([step.total_ms for step in self.steps])

    @cached_property
    def count(self) -> int:
        """How many training steps were traced."""
        return sum(step.calls for step in self.steps)

    @property
    def several_per_call(self) -> bool:
        """Whether one call holds several training steps already, as with ``steps_per_execution``."""
        return self.count > len(self.steps)

    @property
    def too_few(self) -> bool:
        """Whether they show no saving: too few steps, or too few calls of several steps, which have no middle."""
        return self.count < FEWEST_STEPS or len(self.steps) <= FEW_STEPS

    @property
    def median_ms(self) -> float:
        """The median time of a step, in ms."""
        return float(np.median(self.times_ms))

    @property
    def usual_ms(self) -> float:
        """The time of the step that figures are about, in ms.

        The median; where the input stalls some steps again and again, the mean of all but the outliers.
        """
        if not self.stalled:
            return self.median_ms
        calls = sum(step.calls for step in self.steady_steps)
        return sum(step.total_ms * step.calls for step in self.steady_steps) / calls

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the steps' times."""
        return float(np.percentile(self.times_ms, percent))

    @property
    def mean_ms(self) -> float:
        """The mean time of a step, outliers included."""
        return float(np.mean(self.times_ms))


class RoundUnit(StrEnum):
    """What a device's figures are per."""

    STEP = "step"  # the mean of the steady steps, scaled to the median step
    TRACE = "trace"  # the whole trace
    RUN = "run"  # of the compiled program with the most time


STEP, TRACE = RoundUnit.STEP, RoundUnit.TRACE


class SteadySteps(Record, eq=False):
    """The stretches, of which some may touch, and how many training steps they hold.

    ``scale`` is Steps.usual_ms over the mean of these, so that figures sum to that step as
    those of Breakdown do. ``calls`` are the parts of the stretches inside the training call.
    """

    unit: RoundUnit
    stretches: Intervals
    calls: Intervals
    rounds: int
    scale: float = 1.0
    why_no_steps: str = ""

    @classmethod
    def measure(cls, trace: Trace, device: Device, steps: Steps | Unavailable) -> Self:
        """Take the steps that are no outliers; without steps, from a GPU's first work to its last.

        Raises:
            Unavailable: there is neither a step nor any work of a GPU.
        """
        if isinstance(steps, Steps):
            return cls.of(steps)
        spans_by_line = [spans(line) for plane in trace.devices(DeviceKind.GPU) for line in work_lines(plane)]
        edges = [edge for line_spans in spans_by_line if line_spans for edge in line_spans.bounds_ps]
        if device.missing or not edges:
            raise Unavailable(str(device.missing or steps))
        whole = Intervals([(min(edges), max(edges))])
        return cls(TRACE, whole, whole, 1, why_no_steps=str(steps))

    @classmethod
    def of(cls, steps: Steps) -> Self:
        """Take the steps that are no outliers."""
        chosen = steps.steady_steps
        rounds = sum(step.calls for step in chosen)
        mean = steps.steady_spans.total / PS_PER_MS / rounds
        calls = Intervals.union((step.start_ps, step.call_end_ps) for step in chosen)
        return cls(STEP, steps.steady_spans, calls, rounds, steps.usual_ms / mean if mean else 1.0)

    @property
    def several_per_call(self) -> bool:
        """Whether one call holds several training steps already, as with ``steps_per_execution``."""
        return self.unit is STEP and self.rounds > len(self.stretches)

    def ms(self, work: Intervals) -> float:
        """Return how long something lasts, in ms per round."""
        return self.scaled(int(work.covered(self.stretches.starts_ps, self.stretches.ends_ps).sum()))

    def split_ms(self, work: Intervals) -> tuple[float, float]:
        """Return how long something lasts inside and outside of the training calls, in ms per round."""
        inside_ms = self.ms(work & self.calls)
        return inside_ms, max(0.0, self.ms(work) - inside_ms)

    def scaled(self, ps: int) -> float:
        """Return ps, summed over the stretches, as ms per round."""
        return ps / PS_PER_MS / self.rounds * self.scale

    @property
    def round_ms(self) -> float:
        """The round itself: the step (Steps.usual_ms), or the length of the trace."""
        return self.scaled(self.stretches.total)

    def holds(self, times_ps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (n,) whether a time lies in one of the stretches."""
        return self.stretches.holds(times_ps)


def _none(trace: Trace, recording: Recording, framework: Framework) -> Unavailable:
    manifest = recording.manifest
    if manifest is not None and manifest.trace_gap is not None:
        return Unavailable(manifest.trace_gap.why)
    if manifest is not None and manifest.plan is not None and not manifest.plan.trace:
        return Unavailable("the run was recorded without a trace, as was asked for")
    if manifest is not None and manifest.window is not None and recording.damage and not recording.traces:
        return Unavailable("the trace of the steps is damaged", "record again")
    if framework.foreign:
        return Unavailable("the trace marks no training step", framework.how_to_record)
    why = "no training step was found in the trace"
    often = Counter(call.name for call in graph_calls(trace) if not call.in_pipeline)
    name, times = often.most_common(1)[0] if often else ("", 0)
    if times >= FEWEST:
        what = "a graph" if name in FUNCTION_RUNS else f"`{name}`"
        why += f": {what} is called {times} times, but shows no gradient or update, as in prediction and evaluation"
    return Unavailable(why, "record with `tfdoctor profile`, which marks the steps")
