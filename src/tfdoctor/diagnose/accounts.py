"""What explains the time of each large part of the step: findings, necessary work, or nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tfdoctor.diagnose.summary.profile import OF_HOST
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.step import Account, AccountState
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline, PipelineSegment
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.samples import BUSY_CORES
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.given import SHARE, Unexplained
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.step_time.sampled_steps import HostLines
from tfdoctor.facts.step_time.timed_line import WITHIN, TimedLine
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.humanize import number, with_noun
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Location, PartTime, Recurrence, Stage

# How often time of the run comes that steps have a part of.
IN_STEPS = (Recurrence.PER_STEP, Recurrence.PER_CALL)
WITHIN_DATA = "tf.data itself runs the training, so waiting for input cannot be separated from it"


class StepParts(Record):
    """The parts of the step, and what the input's stages have to do with its wait.

    ``kept`` is the share of each part's traced time that is not the profiler's: findings name traced time.
    ``lines`` has the traced time of the user's lines in the parts in which Python works.
    """

    times_ms: Mapping[str, float]
    segments: tuple[PipelineSegment, ...]
    kept: Mapping[str, float]
    lines: Mapping[Stage, Sequence[TimedLine]]

    @property
    def large(self) -> dict[str, float]:
        """The parts that need an account, in ms per training step."""
        return {part: time for part, time in self.times_ms.items() if time and self.is_large(time, 0.0)}

    def is_large(self, time_ms: float, rounding: float = 1e-9) -> bool:
        """Return whether so much time needs an explanation."""
        return time_ms >= (SHARE - rounding) * sum(self.times_ms.values())

    def named(self, part: str, findings: Iterable[Finding]) -> float:
        """Return how much of a part findings name, in ms; each subject counts once.

        An effect on a subject names it up to its ``of``; one on the whole stage without ``of`` names all. What
        changes of the run save at a line of the step's is named as well.
        """
        subjects, declared, at = dict[str, float](), list[PartTime](), set[Location | None]()
        for finding in findings:
            declared += finding.names
            in_steps = any(effect.recurs in IN_STEPS for effect in finding.run_effects)
            at.update(finding.lines if in_steps else ())
            for effect in finding.effects:
                if effect.stage == part and effect.names:
                    time = self._named_by(effect)
                    subjects[effect.subject] = max(subjects.get(effect.subject, 0.0), time)
        of_part = (line for stage, own in self.lines.items() if stage == part for line in own)
        # What TensorFlow and Keras do for a call that trains is none of the change at its line.
        own = (line.ms for line in of_part if line.at in at and line.work not in WITHIN)
        at_lines = self.kept[part] * sum(own)
        return min(self.times_ms[part], max(sum(subjects.values()), self._of(part, declared), at_lines))

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
            return effect.of.value * self.kept[effect.stage]
        return total if not effect.subject else 0.0

    def necessary(self, part: str, results: Iterable[Result]) -> tuple[float, tuple[str, ...]]:
        """Return the time of a part that healthy rules account for, in ms, and why it is necessary."""
        healthy = (r.outcome for r in results if isinstance(r.outcome, Healthy))
        times = [time for one in healthy for time in one.necessary if time.part == part]
        return self._of(part, times), tuple(dict.fromkeys(time.why for time in times))

    def _of(self, part: str, times: Iterable[PartTime]) -> float:
        return self.kept[part] * sum(time.of.value for time in times if time.part == part)


def step_parts(chart: Chart) -> StepParts | None:
    """Return the parts of the step; None where they are unknown."""
    breakdown, model, pipeline = chart.get(Breakdown), chart.get(StepModel), chart.get(InputPipeline)
    if breakdown is None or not breakdown.step_ms:
        return None
    times = {str(part): time for part, time in (model.exposed if model else breakdown.median).items()}
    kept = {part: model.kept(part) if model else 1.0 for part in times}
    lines = chart.get(HostLines)
    return StepParts(times, pipeline.segments if pipeline else (), kept, lines.parts if lines else {})


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
    subjects = {name for one in findings for effect in one.effects for name in (effect.subject, *effect.parts)}
    return Unexplained(
        {part: time / of_step.kept[part] for part, time in left.items() if of_step.is_large(time)},
        frozenset(subjects - {""}),
    )


def accounts(chart: Chart, results: Sequence[Result]) -> tuple[Account, ...]:
    """Return the account of each part that takes at least a tenth of the step."""
    of_step = step_parts(chart)
    return tuple(_account(chart, of_step, part, results) for part in of_step.large) if of_step else ()


def _account(chart: Chart, of_step: StepParts, part: str, results: Sequence[Result]) -> Account:
    total = of_step.times_ms[part]
    findings = {r.rule.name: r.outcome for r in results if isinstance(r.outcome, Finding)}
    left = total - of_step.named(part, findings.values())
    rules = tuple(name for name, finding in findings.items() if of_step.named(part, [finding]))
    account = Account(part=part, total_ms=total, state=AccountState.NAMED, rules=rules)
    if not of_step.is_large(left):
        return account
    necessary, why = of_step.necessary(part, results)
    left = max(0.0, left - necessary)
    activity = chart.get(Activity) if part == UNKNOWN else None  # why the trace assigns time to nothing
    if activity:
        why = (*why, *filter(None, (activity.missing, WITHIN_DATA if activity.within_data else "")))
    if not of_step.is_large(left):
        return replace(account, state=AccountState.NECESSARY, why=why)
    return replace(
        account, state=AccountState.UNEXPLAINED, why=(*why, *_disturbed(chart, part)), unexplained_ms=left
    )


def _disturbed(chart: Chart, part: str) -> Iterator[str]:
    """Say that other programs delayed the CPU's work in a part, where they did."""
    cores, device = chart.get(Cores), chart.get(Device)
    computed = part == Stage.DEVICE and device is not None and device.kind == DeviceKind.CPU
    if (part in OF_HOST or computed) and cores and cores.crowded and cores.others > BUSY_CORES:
        used = f"{number(round(cores.others, 1))} of {with_noun(cores.usable, 'core')}"
        yield f"Other programs used {used} meanwhile, which makes this time longer"
