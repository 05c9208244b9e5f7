"""What takes most of a step, and how far that is from what the hardware can do."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tfdoctor.diagnosis.work import Profile, ProfileRow, PythonPart, WorkKind
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.host_time import PartEvents
from tfdoctor.facts.step_time.sampled_steps import HostLines, StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork, TimedLine, by_caller
from tfdoctor.terms.run_time import PhaseLine
from tfdoctor.terms.verdict import Location, Stage

SHOWN = 10  # Rows of the profile: beyond them a row takes a few percent of the step, and no reader gets that far
LEAST = 0.01  # Share of the step below which a row is counted with the rest, however few there are
FEW = 5  # Stack samples below which a line's share is not shown: with five it is uncertain by 45 %

# Why the distance of other work than the device's is not known.
OF_PYTHON = "no rate of the hardware bounds Python"
OF_EVENT = "what the host needs for it is not computed"
OF_STAGE = "what a function of the input needs is not computed"

OF_HOST = (Stage.HOST, Stage.BETWEEN)  # The parts of a step in which Python runs

# What a line waits for while it does nothing itself.
WITHIN_CALL = {
    LineWork.ENTERING: "entering a compiled function",
    LineWork.DISPATCHING: "between the operations of a compiled function",
    LineWork.LOOPING: "the framework's own Python",  # the loop may be the user's
}


def sampled(chart: Chart, part: str, part_ms: float = 0.0) -> tuple[TimedLine, ...]:
    """Return the lines of a part by its stack samples.

    Samples without a time were taken between calls: they say nothing of the host's part of a call.
    """
    timed, untimed = chart.get(HostLines), chart.get(StackSamples)
    if timed:
        return timed.parts.get(Stage(part), ())
    places = untimed.places if untimed and part == Stage.BETWEEN else ()
    each_ms = part_ms / max(1, sum(place.seen for place in places))
    return tuple(replace(place, ms=place.seen * each_ms) for place in places)


def profile(chart: Chart, rows: Sequence[ProfileRow]) -> Profile:
    """Return what takes most of the shown step, of all ``step_rows``, with the lines of Python."""
    shown = [row for row in rows[:SHOWN] if row.share >= LEAST]
    left = rows[len(shown) :]
    omitted_ms = sum(row.ms for row in left if not row.beside)
    omitted, python = sum(1 for row in left if row.ms), tuple(_python(chart))
    return Profile(rows=tuple(shown), omitted=omitted, omitted_ms=omitted_ms, python=python)


def step_rows(chart: Chart) -> list[ProfileRow]:
    """Return what takes time in the shown step, the longest first, in its time without the profiler's cost."""
    breakdown, threads, rows = chart.get(Breakdown), chart.get(PartEvents), list[ProfileRow]()
    if breakdown is None or not breakdown.step_ms:
        return rows
    for part in OF_HOST:
        lines = sampled(chart, part, breakdown[part])
        for line in _often(lines):
            what = line.callback or WITHIN_CALL.get(line.work) or line.main_call or "Python"
            row = _row(WorkKind.LINE, what, part, line.ms, OF_PYTHON, at=line.at)
            rows.append(replace(row, within=line.work in WITHIN_CALL))
        known = () if lines or not threads else threads.by_part.get(part, ())
        unplaced = [(f"{event.name} (thread {event.thread})", event.ms) for event in known]
        whole_ms = sum(time for _, time in unplaced)
        scale = min(1.0, breakdown[part] / whole_ms) if whole_ms else 0.0  # threads overlap
        rows += [_row(WorkKind.LINE, what, part, time * scale, OF_EVENT) for what, time in unplaced]
    rows += [*_operations(chart), *_stages(chart, breakdown)]
    model, kept = chart.get(StepModel), kept_of(chart)
    step_ms = model.step_ms if model else breakdown.step_ms
    times = [row.ms * kept(row.part) for row in rows]
    rows = [replace(row, ms=time, share=time / step_ms) for row, time in zip(rows, times, strict=True)]
    return sorted(rows, key=lambda row: -row.ms)


def kept_of(chart: Chart) -> Callable[[str], float]:
    """Return what gives the share of a part's time that is no cost of the profiler."""
    model = chart.get(StepModel)
    return model.kept if model else lambda _: 1.0


def _python(chart: Chart) -> Iterator[PythonPart]:
    """Yield the parts of the step in which Python runs, with their lines and what these call."""
    breakdown, kept = chart.get(Breakdown), kept_of(chart)
    for part in OF_HOST if breakdown else ():
        part_ms = breakdown[part] if breakdown else 0.0
        often = _often(sampled(chart, part, part_ms))
        called = sorted((one for line in often for one in _calls(line, kept(part))), key=lambda one: -one.ms)
        if often:
            yield PythonPart(part=part, ms=part_ms * kept(part), lines=tuple(called))


def _row(
    kind: WorkKind, what: str, part: str, time_ms: float, unknown: str, at: Location | None = None
) -> ProfileRow:
    return ProfileRow(kind=kind, what=what, part=part, ms=time_ms, share=0.0, unknown=unknown, at=at)


def _often(lines: Sequence[TimedLine]) -> list[TimedLine]:
    """Return the lines that are sampled often enough to be named; of the others their callers that are."""
    rarely = by_caller(line for line in lines if line.seen < FEW)
    return [line for line in (*lines, *rarely) if line.seen >= FEW]


def _calls(line: TimedLine, kept: float) -> Iterator[PhaseLine]:
    """Yield a line with each of its calls that is sampled often enough, and with the rest of its time."""
    whole = line.callback or WITHIN_CALL.get(line.work, "")
    calls = {whole: line.seen} if whole else line.calls
    often = {name: seen for name, seen in calls.items() if name and seen >= FEW}
    for name, seen in (*often.items(), ("", line.seen - sum(often.values()))):
        if seen:
            each_ms = kept * line.ms / line.seen
            yield PhaseLine(at=line.at, ms=seen * each_ms, calls=name, samples=seen)


def _operations(chart: Chart) -> Iterator[ProfileRow]:
    """Yield the operations by type and line, else by type and layer: also those that the facts keep apart.

    Where the hardware's rate is unknown, products are compared with the best of this run, as far as that is known.
    """
    known = chart.get(OperationGroups)
    places: dict[object, list[OperationGroup]] = defaultdict(list)
    for group in known.groups if known else ():
        places[group.type, group.at or group.layers[:1]].append(group)
    for groups in places.values():
        first, total_ms = groups[0], sum(group.ms for group in groups)
        least = [group.least_ms for group in groups if group.least_ms is not None]
        missing = next((group.missing for group in groups if group.least_ms is None), "")
        reached = [
            group.ms * min(1.0, group.gflop_s / group.best_gflop_s)
            for group in groups
            if group.gflop_s and group.best_gflop_s
        ]
        yield replace(
            _row(WorkKind.OPERATION, first.type, Stage.DEVICE, total_ms, missing, at=first.at),
            layer=", ".join(first.layers[:2]),
            attained=min(1.0, sum(least) / total_ms) if total_ms and not missing else None,
            of_fastest=sum(reached) / total_ms if missing and total_ms and len(reached) == len(groups) else None,
        )


def _stages(chart: Chart, breakdown: Breakdown) -> Iterator[ProfileRow]:
    """Yield the stages of the input: those that steps wait for, and those that work beside them."""
    pipeline, model = chart.get(InputPipeline), chart.get(StepModel)
    if pipeline is None:
        return
    waits = model.waits if model else breakdown.waits_for_input
    awaited = {stage.path for stage in pipeline.limiting} if waits else set()
    ahead = [segment for segment in pipeline.segments if segment.overlapped]
    beside = {path for segment in ahead for path in segment.stages} - awaited
    for stage in pipeline.stages:
        if not stage.is_root and stage.wall_ms:
            what = f"{stage.title}, mostly {stage.slowest[0]}" if stage.slowest else stage.title
            row = _row(WorkKind.STAGE, what, Stage.INPUT, stage.wall_ms, OF_STAGE, at=stage.at)
            yield replace(row, beside=stage.path in beside, inner=stage.slowest[1] if stage.slowest else None)
