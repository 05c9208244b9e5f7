"""What explains the time of each large part of the step: findings, necessary work, or nothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tfdoctor.diagnose.summary.profile import seen_in
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.step import Account, AccountState, Seen
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline, PipelineSegment
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.samples import BUSY_CORES
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import SHARE, Unexplained
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.humanize import number
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import Unit
from tfdoctor.terms.verdict import Effect, Finding, Healthy, PartTime, Stage

WITHIN_DATA = "tf.data itself runs the training, so waiting for input cannot be separated from it"


class StepParts(Record):
    """The parts of the step, and what the input's stages have to do with its wait.

    ``kept`` is the share of each part's traced time that is not the profiler's: findings name traced time.
    """

    times_ms: Mapping[str, float]
    segments: tuple[PipelineSegment, ...] = ()
    kept: Mapping[str, float] = field(default_factory=dict)

    def of(self, part: str, traced_ms: float) -> float:
        """Return what remains of time of a traced part without the profiler's cost, in ms."""
        return traced_ms * self.kept.get(part, 1.0)

    @property
    def large(self) -> dict[str, float]:
        """The parts that need an account, in ms per training step."""
        least = SHARE * sum(self.times_ms.values())
        return {part: time for part, time in self.times_ms.items() if time and time >= least}

    def is_large(self, time_ms: float) -> bool:
        """Return whether so much time needs an explanation, leaving out rounding."""
        return time_ms >= (SHARE - 1e-9) * sum(self.times_ms.values())

    def named(self, part: str, findings: Iterable[Finding]) -> float:
        """Return how much of a part findings name, in ms; each subject counts once.

        An effect on a subject names it up to its ``of``; one on the whole stage without ``of`` names all.
        """
        subjects, declared = dict[str, float](), list[PartTime]()
        for finding in findings:
            declared += finding.names
            for effect in finding.effects:
                if effect.stage == part and effect.names:
                    time = self._named_by(effect)
                    subjects[effect.subject] = max(subjects.get(effect.subject, 0.0), time)
        return min(self.times_ms[part], max(sum(subjects.values()), self.of(part, _of_part(part, declared))))

    def _named_by(self, effect: Effect) -> float:
        total = self.times_ms[effect.stage]
        if effect.stage is Stage.INPUT and effect.subject:  # its share in the work that a wait for input is for
            waited = [segment for segment in self.segments if not segment.overlapped and segment.ms]
            ahead = [segment for segment in self.segments if segment.overlapped]
            waited += [max(ahead, key=lambda segment: segment.ms)] if ahead else []
            whole = sum(segment.ms for segment in waited)
            limiting = sum(segment.stages.get(effect.subject, 0.0) for segment in waited)
            return total * (limiting / whole if whole else 1.0)
        if effect.of is not None:
            return self.of(effect.stage, effect.of.value)
        return total if not effect.subject else 0.0

    def necessary(self, part: str, results: Iterable[Result]) -> tuple[float, tuple[str, ...]]:
        """Return the time of a part that healthy rules account for, in ms, and why it is necessary."""
        healthy = (r.outcome for r in results if isinstance(r.outcome, Healthy))
        times = [time for one in healthy for time in one.necessary if time.part == part]
        return self.of(part, _of_part(part, times)), tuple(dict.fromkeys(time.why for time in times))


def _of_part(part: str, times: Iterable[PartTime]) -> float:
    return sum(time.of.value for time in times if time.part == part)


def step_parts(chart: Chart) -> StepParts | None:
    """Return the parts of the step; None where they are unknown."""
    breakdown, model = chart.get(Breakdown), chart.get(StepModel)
    if breakdown is None or not breakdown.step_ms:
        return None
    pipeline = chart.get(InputPipeline)
    times = {str(part): time for part, time in (model.exposed if model else breakdown.median).items()}
    kept = {part: model.kept(part) for part in times} if model else {}
    return StepParts(times, pipeline.segments if pipeline else (), kept)


def unexplained(chart: Chart, results: Sequence[Result]) -> Unexplained | None:
    """Return what specific findings leave for the general rules; None where the parts are unknown.

    A ceiling of a whole stage, such as the wait for input, does not say what takes the time in it. Time that a
    healthy rule shows to be necessary needs no other name.
    """
    of_step = step_parts(chart)
    if of_step is None:
        return None
    found = [r.outcome for r in results if isinstance(r.outcome, Finding)]
    findings = [replace(f, effects=tuple(e for e in f.effects if not e.is_ceiling)) for f in found]
    left = {
        part: time - of_step.named(part, findings) - of_step.necessary(part, results)[0]
        for part, time in of_step.large.items()
    }
    effects = [effect for finding in findings for effect in finding.effects]
    subjects = {name for effect in effects for name in (effect.subject, *effect.parts)}
    return Unexplained(
        {part: time / of_step.of(part, 1.0) for part, time in left.items() if of_step.is_large(time)},
        frozenset(subjects - {""}),
    )


def accounts(chart: Chart, results: Sequence[Result]) -> tuple[Account, ...]:
    """Return the account of each part that takes at least a tenth of the step."""
    of_step = step_parts(chart)
    return tuple(_account(chart, of_step, part, results) for part in of_step.large) if of_step else ()


def _account(chart: Chart, of_step: StepParts, part: str, results: Sequence[Result]) -> Account:
    total = of_step.times_ms[part]
    findings = {r.rule.name: r.outcome for r in results if isinstance(r.outcome, Finding)}
    unnamed = left = total - of_step.named(part, findings.values())
    necessary, why = of_step.necessary(part, results)
    state = AccountState.NAMED
    if of_step.is_large(unnamed):
        left = max(0.0, unnamed - necessary)
        state = AccountState.UNEXPLAINED if of_step.is_large(left) else AccountState.NECESSARY
    is_left = state is AccountState.UNEXPLAINED
    activity = chart.get(Activity) if part == UNKNOWN else None  # why the trace assigns time to nothing
    unassigned = (activity.missing, WITHIN_DATA if activity.within_data else "") if activity else ()
    return Account(
        part=part,
        total_ms=total,
        state=state,
        rules=tuple(name for name, f in findings.items() if of_step.named(part, [f])),
        why=(
            *((*why, *filter(None, unassigned)) if state is not AccountState.NAMED else ()),
            *(_disturbed(chart, part) if is_left else ()),
        ),
        unexplained_ms=left if is_left else 0.0,
        seen=_seen(chart, of_step, part, left, findings.values()) if is_left else (),
    )


def _seen(
    chart: Chart, of_step: StepParts, part: str, left_ms: float, findings: Iterable[Finding]
) -> tuple[Seen, ...]:
    """Return what was seen in the unexplained time of a part, its times without the profiler's cost."""
    named: dict[str, float] = {}
    for effect in (e for finding in findings for e in finding.effects):
        if effect.stage == part and effect.names and effect.subject:
            time = effect.of.value if effect.of else math.inf
            named[effect.subject] = max(named.get(effect.subject, 0.0), time)
            named |= dict.fromkeys(effect.parts, math.inf)
    kept = of_step.of(part, 1.0)
    return tuple(
        replace(seen, value=kept * seen.value) if seen.unit is Unit.MILLISECONDS else seen
        for seen in seen_in(chart, part, left_ms / kept if kept else 0.0, named)
    )


def _disturbed(chart: Chart, part: str) -> tuple[str, ...]:
    """Say that other programs delayed the CPU's work in a part, where they did."""
    cores, device = chart.get(Cores), chart.get(Device)
    on_cpu = part in (Stage.HOST, Stage.BETWEEN) or (
        part == Stage.DEVICE and device is not None and device.kind == DeviceKind.CPU
    )
    if not on_cpu or cores is None or not cores.crowded or cores.others <= BUSY_CORES:
        return ()
    used = f"{number(round(cores.others, 1))} of {number(cores.usable)} cores"
    return (f"Other programs used {used} meanwhile, which makes this time longer",)
