"""What explains the time of each large part of the step: findings, necessary work, or nothing."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tfdoctor.diagnose.summary.seen import seen_in
from tfdoctor.diagnosis import Account, AccountState, Result, Seen
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
from tfdoctor.terms.units import Unit, ms
from tfdoctor.terms.verdict import Effect, Finding, Healthy, PartTime, Stage


class Parts(Record):
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
        total, subjects = self.times_ms[part], dict[str, float]()
        for finding in findings:
            for effect in finding.effects:
                if effect.stage == part and effect.names:
                    time = self._named_by(effect)
                    subjects[effect.subject] = max(subjects.get(effect.subject, 0.0), time)
        declared = _of_part(part, (time for finding in findings for time in finding.names))
        return min(total, max(sum(subjects.values()), self.of(part, declared)))

    def _named_by(self, effect: Effect) -> float:
        total = self.times_ms[effect.stage]
        if effect.stage is Stage.INPUT and effect.subject:
            return total * self._limiting(effect.subject)
        if effect.of is not None:
            return self.of(effect.stage, effect.of.value)
        return total if not effect.subject else 0.0

    def _limiting(self, path: str) -> float:
        """Return the share of a stage in the work that a wait for input is for, 0 to 1."""
        waited = [segment for segment in self.segments if not segment.overlapped and segment.ms]
        ahead = [segment for segment in self.segments if segment.overlapped]
        waited += [max(ahead, key=lambda segment: segment.ms)] if ahead else []
        whole = sum(segment.ms for segment in waited)
        return sum(segment.stages.get(path, 0.0) for segment in waited) / whole if whole else 1.0


def parts(chart: Chart) -> Parts | None:
    """Return the parts of the step; None where they are unknown."""
    breakdown, model = chart.get(Breakdown), chart.get(StepModel)
    if breakdown is None or not breakdown.step_ms:
        return None
    pipeline = chart.get(InputPipeline)
    times = {str(part): time for part, time in (model.exposed if model else breakdown.median).items()}
    kept = {part: model.kept(part) for part in times} if model else {}
    return Parts(times, pipeline.segments if pipeline else (), kept)


def unexplained(chart: Chart, results: Iterable[Result]) -> Unexplained | None:
    """Return what specific findings leave for the general rules; None where the parts are unknown.

    A ceiling of a whole stage, such as the wait for input, does not say what takes the time in it. Time that a
    healthy rule shows to be necessary needs no other name.
    """
    of_step, results = parts(chart), tuple(results)
    if of_step is None:
        return None
    found = [r.outcome for r in results if isinstance(r.outcome, Finding)]
    findings = [replace(f, effects=tuple(e for e in f.effects if not e.is_ceiling)) for f in found]
    left = {
        part: ms - of_step.named(part, findings) - of_step.of(part, _of_part(part, _necessary(results, part)))
        for part, ms in of_step.large.items()
    }
    effects = [effect for finding in findings for effect in finding.effects]
    subjects = {name for effect in effects for name in (effect.subject, *effect.parts)}
    return Unexplained(
        {part: ms / of_step.of(part, 1.0) for part, ms in left.items() if of_step.is_large(ms)},
        frozenset(subjects - {""}),
    )


def accounts(chart: Chart, results: Sequence[Result]) -> tuple[Account, ...]:
    """Return the account of each part that takes at least a tenth of the step."""
    of_step = parts(chart)
    if of_step is None:
        return ()
    return tuple(_account(chart, of_step, part, results) for part in of_step.large)


def _account(chart: Chart, of_step: Parts, part: str, results: Sequence[Result]) -> Account:
    total = of_step.times_ms[part]
    findings = {r.rule.name: r.outcome for r in results if isinstance(r.outcome, Finding)}
    named = of_step.named(part, findings.values())
    necessary = _necessary(results, part)
    left = (
        total - named
        if not of_step.is_large(total - named)
        else max(0.0, total - named - of_step.of(part, _of_part(part, necessary)))
    )
    state = _state(of_step, total - named, left)
    is_left = state is AccountState.UNEXPLAINED
    return Account(
        part=part,
        total_ms=total,
        state=state,
        rules=tuple(name for name, f in findings.items() if of_step.named(part, [f])),
        why=(
            *(_why(chart, part, necessary) if state is not AccountState.NAMED else ()),
            *(_disturbed(chart, part) if is_left else ()),
        ),
        unexplained_ms=left if is_left else 0.0,
        seen=_seen(chart, of_step, part, left, findings.values()) if is_left else (),
    )


def _necessary(results: Iterable[Result], part: str) -> list[PartTime]:
    """Return the time of a part that healthy rules account for."""
    healthy = (r.outcome for r in results if isinstance(r.outcome, Healthy))
    return [time for one in healthy for time in one.necessary if time.part == part]


def _seen(chart: Chart, of_step: Parts, part: str, left_ms: float, findings: Iterable[Finding]) -> tuple[Seen, ...]:
    """Return what was seen in the unexplained time of a part, its times without the profiler's cost."""
    named: dict[str, float] = {}
    for effect in (e for finding in findings for e in finding.effects):
        if effect.stage == part and effect.names and effect.subject:
            time = effect.of.value if effect.of else math.inf
            named[effect.subject] = max(named.get(effect.subject, 0.0), time)
            named |= dict.fromkeys(effect.parts, math.inf)
    kept = of_step.of(part, 1.0)
    return tuple(
        replace(seen, amount=ms(kept * seen.amount.value)) if seen.amount.unit is Unit.MILLISECONDS else seen
        for seen in seen_in(chart, part, left_ms / kept if kept else 0.0, named)
    )


def _why(chart: Chart, part: str, necessary: Iterable[PartTime]) -> tuple[str, ...]:
    """Return why time of a part is necessary, or why the trace assigns it to nothing."""
    why = tuple(dict.fromkeys(time.why for time in necessary))
    activity = chart.get(Activity)
    if part != UNKNOWN or activity is None:
        return why
    within = (WITHIN_DATA,) if activity.within_data else ()
    return (*why, *filter(None, (activity.missing,)), *within)


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


WITHIN_DATA = "tf.data itself runs the training, so waiting for input cannot be separated from it"


def _state(of_step: Parts, unnamed: float, left: float) -> AccountState:
    if not of_step.is_large(unnamed):
        return AccountState.NAMED
    return AccountState.UNEXPLAINED if of_step.is_large(left) else AccountState.NECESSARY


def _of_part(part: str, times: Iterable[PartTime]) -> float:
    return sum(time.of.value for time in times if time.part == part)
