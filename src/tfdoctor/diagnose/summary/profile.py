"""The profile of the step: what takes most of it, and how far that is from what the hardware can do."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tfdoctor.diagnose.summary.seen import FEW, WITHIN_CALL
from tfdoctor.diagnosis import PhaseLine, Profile, ProfileRow, PythonPart, WorkKind
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.facts.step_time.host_time import PartEvents
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import TimedLine, by_caller
from tfdoctor.terms.verdict import Stage

SHOWN = 10  # Rows of the profile: beyond them a row takes a few percent of the step, and no reader gets that far
LEAST = 0.01  # Share of the step below which a row is counted with the rest, however few there are

OF_PYTHON = "no rate of the hardware bounds Python"
OF_EVENT = "what the host needs for it is not computed"
# Why the distance of other work than the device's is not known.
OF_STAGE = "what a function of the input needs is not computed"


def profile(chart: Chart) -> Profile:
    """Return what takes most of the shown step, the longest first, in its time without the profiler's cost."""
    breakdown, model = chart.get(Breakdown), chart.get(StepModel)
    if breakdown is None or not breakdown.step_ms:
        return Profile()
    step_ms = model.step_ms if model else breakdown.step_ms
    found = (*_lines(chart, breakdown), *_operations(chart), *_stages(chart, breakdown, model))
    rows = []
    for row in found:
        time_ms = row.ms * (model.kept(row.part) if model else 1.0)
        rows.append(replace(row, ms=time_ms, share=time_ms / step_ms))
    rows.sort(key=lambda row: -row.ms)
    shown = [row for row in rows[:SHOWN] if row.share >= LEAST]
    left = [row.ms for row in rows[len(shown) :] if row.ms]
    return Profile(
        rows=tuple(shown),
        omitted=len(left),
        omitted_ms=sum(row.ms for row in rows[len(shown) :] if not row.beside),
        python=tuple(_python(chart, breakdown, model)),
    )


def _lines(chart: Chart, breakdown: Breakdown) -> Iterator[ProfileRow]:
    """Yield the lines of Python in the host's parts; of a part without any, the events of its threads."""
    for part in (Stage.HOST, Stage.BETWEEN):
        lines = _sampled(chart, part, breakdown[part])
        yield from (_line(line, part) for line in _often(lines))
        if not lines:
            yield from _events(chart.get(PartEvents), part, breakdown[part])


def _often(lines: Sequence[TimedLine]) -> list[TimedLine]:
    """Return the lines that are sampled often enough to be named; of the others their callers that are."""
    rarely = by_caller(line for line in lines if line.seen < FEW)
    return [line for line in (*lines, *rarely) if line.seen >= FEW]


def _python(chart: Chart, breakdown: Breakdown, model: StepModel | None) -> Iterator[PythonPart]:
    """Yield the host's parts of the step with their lines, and what each of these calls."""
    for part in (Stage.HOST, Stage.BETWEEN):
        lines = _often(_sampled(chart, part, breakdown[part]))
        if lines:
            kept = model.kept(part) if model else 1.0
            called = sorted((one for line in lines for one in _calls(line, kept)), key=lambda one: -one.ms)
            yield PythonPart(part=part, ms=breakdown[part] * kept, lines=tuple(called))


def _calls(line: TimedLine, kept: float) -> Iterator[PhaseLine]:
    """Yield a line with each of its calls that is sampled often enough, and with the rest of its time."""
    whole = line.callback or WITHIN_CALL.get(line.work, "")
    calls = {whole: line.seen} if whole else line.calls
    often = {name: seen for name, seen in calls.items() if name and seen >= FEW}
    for name, seen in (*often.items(), ("", line.seen - sum(often.values()))):
        if seen:
            each_ms = kept * line.ms / line.seen
            yield PhaseLine(at=line.at, ms=seen * each_ms, calls=name, samples=seen)


def _sampled(chart: Chart, part: Stage, part_ms: float) -> tuple[TimedLine, ...]:
    """Return the lines of a part by its stack samples.

    Samples without a time were taken between calls: they say nothing of the host's part of a call.
    """
    timed, untimed = chart.get(HostLines), chart.get(StackSamples)
    if timed:
        return timed.parts.get(part, ())
    places = untimed.places if untimed and part is Stage.BETWEEN else ()
    each_ms = part_ms / max(1, sum(place.seen for place in places))
    return tuple(replace(place, ms=place.seen * each_ms) for place in places)


def _events(events: PartEvents | None, part: Stage, part_ms: float) -> Iterator[ProfileRow]:
    """Yield the events of a part, each as its share of the part's time: threads overlap."""
    found = events.by_part.get(part, ()) if events else ()
    whole_ms = sum(event.ms for event in found)
    scale = min(1.0, part_ms / whole_ms) if whole_ms else 0.0
    for event in found:
        what = f"{event.name} (thread {event.thread})"
        yield _row(WorkKind.LINE, what, part, event.ms * scale, unknown=OF_EVENT)


def _line(line: TimedLine, part: Stage) -> ProfileRow:
    what = line.callback or WITHIN_CALL.get(line.work) or line.main_call or "Python"
    return replace(_row(WorkKind.LINE, what, part, line.ms, unknown=OF_PYTHON), at=line.at)


def _row(kind: WorkKind, what: str, part: str, time_ms: float, unknown: str = "") -> ProfileRow:
    return ProfileRow(kind=kind, what=what, part=part, ms=time_ms, share=0.0, unknown=unknown)


def _operations(chart: Chart) -> Iterator[ProfileRow]:
    """Yield the operations by type and line, else by type and layer: also those that the facts keep apart."""
    known = chart.get(OperationGroups)
    places: dict[object, list[OperationGroup]] = defaultdict(list)
    for group in known.groups if known else ():
        places[group.type, group.at or group.layers[:1]].append(group)
    for groups in places.values():
        first, total_ms = groups[0], sum(group.ms for group in groups)
        least = [group.least_ms for group in groups if group.least_ms is not None]
        missing = next((group.missing for group in groups if group.least_ms is None), "")
        row = _row(WorkKind.OPERATION, first.type, Stage.DEVICE, total_ms, unknown=missing)
        yield replace(
            row,
            at=first.at,
            layer=", ".join(first.layers[:2]),
            attained=min(1.0, sum(least) / total_ms) if total_ms and not missing else None,
            of_fastest=_of_fastest(groups) if missing else None,
        )


def _of_fastest(groups: Iterable[OperationGroup]) -> float | None:
    """Return the rate of products relative to the best of this run; None where either is unknown."""
    reached, total_ms = 0.0, 0.0
    for group in groups:
        if not group.gflop_s or not group.best_gflop_s:
            return None
        reached += group.ms * min(1.0, group.gflop_s / group.best_gflop_s)
        total_ms += group.ms
    return reached / total_ms if total_ms else None


def _stages(chart: Chart, breakdown: Breakdown, model: StepModel | None) -> Iterator[ProfileRow]:
    """Yield the stages of the input: those that steps wait for, and those that work beside them."""
    pipeline = chart.get(InputPipeline)
    if pipeline is None:
        return
    waits = model.waits if model else breakdown.waits_for_input
    awaited = {stage.path for stage in pipeline.limiting} if waits else set()
    ahead = [segment for segment in pipeline.segments if segment.overlapped]
    beside = {path for segment in ahead for path in segment.stages} - awaited
    for stage in pipeline.stages:
        if not stage.is_root and stage.wall_ms:
            row = _row(WorkKind.STAGE, stage.title, Stage.INPUT, stage.wall_ms, unknown=OF_STAGE)
            yield replace(row, at=stage.at, beside=stage.path in beside)
