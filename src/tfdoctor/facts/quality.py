"""How far the recording itself can be trusted."""

from types import MappingProxyType

from tfdoctor.facts.kit import *
from tfdoctor.facts.machine.samples import BUSY_CORES, Samples
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.steps import FEWEST_STEPS, Steps
from tfdoctor.facts.steps.untraced_pace import DISTORTED, MOSTLY_TRACING, slowdown
from tfdoctor.recording import Manifest
from tfdoctor.recording.manifest import MissingPart
from tfdoctor.terms.humanize import counted, duration
from tfdoctor.terms.kinds import TrustLevel
from tfdoctor.trace.names import EVENTS_DROPPED

UNEVEN = 0.25  # Half of the steps differ by more than this share of the median: the figures are of a mixture
LEFT_OUT = 0.5  # Share of the traced time in outlier steps: above it the steady steps no longer represent the run
NEARLY_ALL = 0.8  # Share of the traced time in outlier steps from which the figures describe hardly any of the run
SLOWED = 0.10  # Profiling made the steps this much slower than those before it: short operations are overstated
# Steps below this, in ms, may be mostly the profiler's cost where none was timed without it: of JAX 0.11.2 on an
# NVIDIA H100 (2026-11-22), steps of 0.17 and 0.63 ms took 0.8 and 0.9 ms when traced; of 3.4 ms 3.9, of 3.9 ms 4.1.
SHORT_MS = 1.0
# Share of the run, in waiting for child processes, from which a run that does not train is about them.
MATTERS = 0.1
CONFIRM = "confirm with a timer before you change anything"
# The limits from which a measured doubt lowers the trust in a report.
LIMITS: Mapping[str, float] = MappingProxyType(
    {"steps": FEWEST_STEPS, "uneven": UNEVEN, "slowed": SLOWED, "busy_cores": BUSY_CORES}
)


class Doubt(Record):
    """One reason to trust the figures less; a grave one invalidates them, any other makes them less precise.

    A doubt that is a matter of degree has the name of its limit, one of ``LIMITS``, and the measured amount.
    The remedy is an imperative; a doubt without one has a cause, which may end with advice of its own.
    """

    what: str
    remedy: str
    grave: bool = False
    limit: str = ""
    amount: float = 0.0
    cause: str = ""

    @property
    def advice(self) -> str:
        """The problem with its remedy or its cause."""
        return f"{self.what}: {self.remedy}" if self.remedy else f"{self.what}, because {self.cause}"

    def beyond(self, limits: Mapping[str, float]) -> bool:
        """Whether the amount is beyond its limit; a doubt without a limit always counts."""
        if self.limit == "steps":
            return self.amount < limits[self.limit]
        return not self.limit or self.amount > limits[self.limit]


class Quality(Record):
    """What is wrong with the recording, most severe first; ``small`` holds what stays within its limit.

    ``account`` says whether it holds the account of the whole run, for which no step need be traced.
    """

    steps: int
    doubts: tuple[Doubt, ...] = ()
    small: tuple[Doubt, ...] = ()
    account: bool = False

    @classmethod
    def measure(  # noqa: PLR0913, PLR0917 - other facts, which are given by their types
        cls,
        trace: Trace,
        device: Device,
        recording: Recording,
        steps: Steps | Unavailable,
        samples: Samples | None,
        framework: Framework,
        phases: RunPhases | None,
    ) -> Self:
        """Collect every reason to doubt the figures."""
        missing = device.missing
        doubts = [Doubt(missing.reason, missing.remedy, grave=True)] if missing else []
        fewer = "trace fewer steps" if framework.foreign else "trace fewer steps (--steps 5)"
        dropped = [text for text in trace.warnings if EVENTS_DROPPED in text]
        doubts += [Doubt(f"the profiler dropped events ({text})", fewer, grave=True) for text in dropped]
        errors = () if missing else trace.errors
        fix = "fix it and record again"
        doubts += [Doubt(f"the profiler reported an error ({text})", fix, grave=True) for text in errors]
        doubts += [Doubt(text, "record again") for text in trace.damage]
        if isinstance(steps, Unavailable):
            doubts += [*_of_none(steps, recording, phases), *_of_recording(recording)]
        else:
            doubts += [*_of_steps(steps, recording, framework), *_of_recording(recording)]
            doubts += _of_window(steps, recording, framework, samples)
        ordered = sorted(doubts, key=lambda doubt: not doubt.grave)
        return cls(
            steps=0 if isinstance(steps, Unavailable) else steps.count,
            doubts=tuple(doubt for doubt in ordered if doubt.beyond(LIMITS)),
            small=tuple(doubt for doubt in ordered if not doubt.beyond(LIMITS)),
            account=recording.run is not None,
        )

    def by(self, limits: Mapping[str, float]) -> tuple[Doubt, ...]:
        """Return the doubts by other limits than ``LIMITS``, most severe first."""
        doubts = (doubt for doubt in (*self.doubts, *self.small) if doubt.beyond(limits))
        return tuple(sorted(doubts, key=lambda doubt: not doubt.grave))

    @property
    def level(self) -> TrustLevel:
        """How far the figures can be trusted."""
        if any(doubt.grave for doubt in self.doubts):
            return TrustLevel.LOW
        return TrustLevel.MEDIUM if self.doubts else TrustLevel.HIGH


def _of_none(why: Unavailable, recording: Recording, phases: RunPhases | None) -> Iterator[Doubt]:
    """Doubt a recording without traced steps, unless it is of a run that was to have none, or trained nothing.

    Of a run that failed at once even the account says little: what follows in a whole run is missing.
    """
    cause = "" if why.remedy else str(why)
    share = phases.share(Phase.CHILDREN) if phases and not phases.of(Phase.STEPS) else 0.0
    if share >= MATTERS:
        what = f"{percent(share)} of the run are waiting for child processes, in which no training step was seen"
        yield Doubt(what, "if one of them trains, record its own command: `tfdoctor profile -- COMMAND`")
        return
    if recording.run is None:
        yield Doubt("no training step was found in the trace", why.remedy, grave=True, cause=cause)
        return
    manifest, other = recording.manifest or Manifest(), recording.run.other_framework
    end, seen = manifest.outcome, manifest.steps.seen
    if other is None and (end.exit_code or end.signal or end.error) and seen <= 1:
        what = f"the run ended before its {'second' if seen else 'first'} training step was over"
        yield Doubt(what, "let it train, and record again", grave=True)
        return
    asked = manifest.plan is None or manifest.plan.trace
    if other or (asked and (seen or recording.traces)):
        yield Doubt("no training step was traced", why.remedy, cause=cause)


def _of_steps(steps: Steps, recording: Recording, framework: Framework) -> Iterator[Doubt]:
    one = steps.count == 1
    what = f"only {steps.count} training steps were traced"
    what = "only 1 training step was traced, which may be the start-up" if one else what
    yield Doubt(what, "trace a training loop of 20 steps or more", grave=one, limit="steps", amount=steps.count)
    if steps.count < FEWEST_STEPS:
        return
    plan = recording.manifest.plan if recording.manifest else None
    by_time = plan is not None and (plan.seconds or not plan.steps)
    options = "" if framework.foreign else " (--steps 100)"
    more = "trace for longer (--for 10s)" if by_time and not framework.foreign else f"trace more steps{options}"
    whole = sum(step.end_ps - step.start_ps for step in steps.steps)
    steady = sum(step.end_ps - step.start_ps for step in steps.steady_steps)
    if whole - steady > LEFT_OUT * whole:
        outliers = counted(len(steps.steps) - len(steps.steady_steps), "outlier step")
        what = f"{percent(1 - steady / whole)} of the traced time is in {outliers}, which the breakdown excludes"
        if recording.run is not None:
            yield Doubt(what, "", cause="the account of the run has their time")
        else:
            remedy = f"{more} to see how often such steps occur; if they recur, fix them first"
            yield Doubt(what, remedy, grave=whole - steady > NEARLY_ALL * whole)
    spread = (steps.percentile_ms(75) - steps.percentile_ms(25)) / steps.median_ms
    what = f"step times vary (interquartile range: {percent(spread)} of the median)"
    yield Doubt(what, more, limit="uneven", amount=spread)


def _of_recording(recording: Recording) -> Iterator[Doubt]:
    for note in recording.damage:
        yield Doubt(note, "record again")
    manifest = recording.manifest
    if manifest is None:
        return
    if manifest.window and manifest.window.contains_warmup:
        what = "the traced window contains warm-up steps, because the first training loop is short"
        yield Doubt(what, "train for more steps than warm-up and traced window together")
    if manifest.window and manifest.cut_by_cost:
        cost = duration(1e3 * sum(window.seconds for window in manifest.costs))
        what = (
            f"tracing ended after {counted(manifest.window.steps, 'step')}, because more would have cost over 10 % "
            f"of the run until then (it cost {cost}, with slower steps and the description of the program)"
        )
        yield Doubt(what, "record a longer run for more steps, or use --no-trace, which costs none of this")
    for gap in manifest.missing:
        if gap.what == MissingPart.GRAPHS:
            yield Doubt(gap.why, "trace each function once")
    run = recording.run
    if manifest.background and not (run and run.end and run.process.pid in manifest.background):
        numbers = ", ".join(map(str, manifest.background))
        what = f"the run went on in the background (process {numbers}), which was not waited for"
        yield Doubt(what, "once it has ended, run `tfdoctor report` on the recording", grave=True)
    if not manifest.finished:
        yield Doubt("the recording was cut off", "record again")


def _of_window(
    steps: Steps, recording: Recording, framework: Framework, samples: Samples | None
) -> Iterator[Doubt]:
    """Doubt steps that tracing made slower, that are so short that it may have, or beside which others worked."""
    slowed_by = slowdown(recording, steps)
    if slowed_by > 1.0:
        untraced = milliseconds(steps.median_ms / slowed_by)
        what = f"tracing made the steps {percent(slowed_by - 1)} slower ({untraced} without tracing)"
        remedy = CONFIRM
        if slowed_by <= DISTORTED:
            remedy = "in the evidence, rely on shares rather than on milliseconds"
        elif slowed_by > MOSTLY_TRACING:
            remedy = f"{CONFIRM}, because most of the traced time is the profiler's own cost"
        yield Doubt(what, remedy, grave=slowed_by > DISTORTED, limit="slowed", amount=slowed_by - 1)
    if recording.manifest is None and framework.foreign and steps.median_ms < SHORT_MS:
        what = (
            f"steps of {milliseconds(steps.median_ms)} were traced, and no step was timed without the profiler, "
            "whose own cost may be most of the host's time in steps this short"
        )
        yield Doubt(what, CONFIRM)
    if samples and samples.other_cores is not None:
        what = f"other programs used {samples.other_cores:.1f} cores while the steps were traced"
        yield Doubt(what, "record on an idle machine", limit="busy_cores", amount=samples.other_cores)
