"""One typical step as a timeline: what each part of it did when, from the facts that the figures are made of."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.step import PARTS, US_PER_MS, Timeline, TimelineBar, TimelineLane
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.iterators import Iterators, Node, consumer
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown, parts_of
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Finding, Stage, StepWork
from tfdoctor.trace.intervals import Intervals

# Bars of all lanes: a picture as wide as a screen shows no more of them apart, and zoom has something left.
MOST_BARS = 1700
# Lanes of work that runs at the same time: on a CPU of 64 cores the first ones show what the others do.
MOST_ROWS = 8
# Share of the step below which neighbouring pieces of work are one bar, doubled until the bars are few enough.
RESOLUTION = 1 / 20_000

ONE_ROW = ("step", "launches")  # Lanes whose bars do not overlap
# Names of the lanes of devices.
LANES = {
    Stage.DEVICE: "operations",
    Stage.TRANSFER: "copies",
    Stage.COLLECTIVE: "collectives",
    Stage.INPUT: "infeed",
}

COPY_NUMBER = re.compile(r"_\d+$")  # What makes the name of an operation unique in its graph

NEITHER = "\0"  # The work of a part that is neither an operation nor a stage of the input

Rules = tuple[str, ...]
Marks = Mapping[tuple[str, str], Rules]


class TimelineWork(Record):
    """Work, or several pieces of it too short to be told apart; times in ms from the start of the step."""

    start_ms: float
    duration_ms: float
    part: str  # of PARTS
    name: str  # what ran; of several pieces the longest
    pieces: int = 1
    rules: Rules = ()  # whose findings are about this work; of several pieces likewise

    @property
    def end_ms(self) -> float:
        """When it ended."""
        return self.start_ms + self.duration_ms


def marks_of(results: Iterable[Result]) -> Marks:
    """Return the rules of findings by the part of the step and the name of the work that they make shorter.

    The name is that of an operation or of a stage of the input, "" for all work of the part, or ``NEITHER``. What
    else costs time for a change is not what is wrong.
    """
    found = defaultdict[tuple[str, str], set[str]](set)
    for result in results:
        for effect in result.outcome.effects if isinstance(result.outcome, Finding) else ():
            for name in (effect.subject, *effect.parts) if effect.names else ():
                found[effect.stage, NEITHER if name in [*StepWork] else name].add(result.rule.name)
    return {work: tuple(sorted(rules)) for work, rules in found.items()}


def about(marks: Marks, part: str, *names: str) -> Rules:
    """Return the rules about work of a part of the step that goes by one of these names."""
    return tuple(dict.fromkeys(rule for name in ("", *names) for rule in marks.get((part, name), ())))


def timeline(chart: Chart, results: Iterable[Result]) -> Timeline | None:
    """Return the timeline of the steady step that is most like the typical one; None without steps."""
    steps, breakdown = chart.get(Steps), chart.get(Breakdown)
    activity, device = chart.get(Activity), chart.get(Device)
    if steps is None or breakdown is None or activity is None or device is None:
        return None
    # How much the parts of each step differ from those of the report's step.
    distances = [
        (sum(abs(row[part] - breakdown.median[part]) for part in row), at)
        for at, (row, steady) in enumerate(zip(breakdown.steps, steps.steady, strict=True))
        if steady
    ]
    if not distances:
        return None
    step, marks = steps.steps[min(distances)[1]], marks_of(results)
    pieces = [  # each instant belongs to one part, as in the breakdown
        _bar(step, span, part, part, about(marks, part, NEITHER))
        for part, intervals in parts_of([step], activity, device).items()
        for span in intervals.spans
    ]
    lanes, hidden = list[tuple[str, list[TimelineWork]]](), 0
    for name, bars in (("step", pieces), *_input(chart, step, marks), *_devices(activity, step, marks)):
        rows: list[list[TimelineWork]] = [[] for _ in range(MOST_ROWS)]
        for bar in sorted(bars, key=attrgetter("start_ms")):
            free = (row for row in rows if name in ONE_ROW or not row or row[-1].end_ms <= bar.start_ms)
            row = next(free, None)
            if row is None:
                hidden += 1
            else:
                row.append(bar)
        lanes += [("" if at else name, row) for at, row in enumerate(rows) if row]
    total_ms = (step.end_ps - step.start_ps) / PS_PER_MS
    return drawn(step.number, total_ms, few(lanes, total_ms), hidden)


def drawn(
    number: int, total_ms: float, lanes: Sequence[tuple[str, Sequence[TimelineWork]]], hidden: int = 0
) -> Timeline:
    """Return the timeline of a step, whose lanes have work with these names."""
    every = [work for _, row in lanes for work in row]
    names = {name: at for at, name in enumerate(dict.fromkeys(work.name for work in every))}
    rules = {own: at for at, own in enumerate(dict.fromkeys(work.rules for work in every))}

    def bar(work: TimelineWork) -> TimelineBar:
        start, duration = (round(US_PER_MS * ms, 1) for ms in (work.start_ms, work.duration_ms))
        return TimelineBar(
            start, duration, PARTS.index(work.part), names[work.name], work.pieces, rules[work.rules]
        )

    return Timeline(
        number=number,
        total_ms=round(total_ms, 6),
        parts=PARTS,
        names=tuple(names),
        rules=tuple(rules),
        lanes=tuple(TimelineLane(name, tuple(map(bar, row))) for name, row in lanes),
        hidden=hidden,
    )


def _bar(step: Step, span: tuple[int, int], part: str, name: str, rules: Rules = ()) -> TimelineWork:
    """Return what of a span, in ps, lies within the step."""
    start, end = max(span[0], step.start_ps), min(span[1], step.end_ps)
    start_ms, time_ms = (start - step.start_ps) / PS_PER_MS, (end - start) / PS_PER_MS
    return TimelineWork(start_ms, time_ms, str(part), name, rules=rules)


def _input(chart: Chart, step: Step, marks: Marks) -> Iterator[tuple[str, list[TimelineWork]]]:
    """Yield the work of each stage of the input pipeline, consumers first."""
    iterators, pipeline = chart.get(Iterators), chart.get(InputPipeline)
    nodes = iterators.nodes if iterators else {}
    for stage in pipeline.stages if pipeline else ():
        if stage.path in nodes and not stage.is_root:
            bars = [
                _bar(step, span, Stage.INPUT, stage.title, about(marks, Stage.INPUT, stage.path))
                for span in _work(nodes[stage.path], nodes.values())
                if span[0] < step.end_ps and span[1] > step.start_ps
            ]
            yield f"input: {stage.title}", bars


def _work(node: Node, nodes: Iterable[Node]) -> Iterable[tuple[int, int]]:
    """Return when a stage worked: its function; without one its calls, without those of the stages upstream.

    The calls of a stage with threads of its own only wait for what these make.
    """
    if node.function or node.asynchronous:
        return node.function
    upstream = [span for other in nodes if consumer(other.path) == node.path for span in other.called]
    return (Intervals.union(node.called) - Intervals.union(upstream)).spans


def _devices(activity: Activity, step: Step, marks: Marks) -> Iterator[tuple[str, list[TimelineWork]]]:
    """Yield when the host launched operations, of accelerators only, and what the devices did."""
    launched = activity.dispatch.within(step.start_ps, step.end_ps).spans
    yield "launches", [_bar(step, span, Stage.HOST, "launch") for span in launched]
    for stage, work in activity.stages.items():
        inside = work.only((work.start_ps < step.end_ps) & (work.end_ps > step.start_ps))
        told = []
        for name, kind, ran in work.labels:  # as the model has it, with its type; without a name what ran
            own = CALLED.sub("", name)
            short = COPY_NUMBER.sub("", own)
            named = f"{short} ({kind})" if kind and kind != short.rpartition("/")[2] else short
            told.append((named if name else ran or kind, about(marks, stage, own, ran)))
        events = zip(inside.label.tolist(), inside.start_ps.tolist(), inside.end_ps.tolist(), strict=True)
        yield LANES[stage], [_bar(step, (start, end), stage, *told[label]) for label, start, end in events]


def few(
    lanes: Sequence[tuple[str, Sequence[TimelineWork]]], total_ms: float, most: int = MOST_BARS
) -> list[tuple[str, list[TimelineWork]]]:
    """Return the lanes with short neighbours merged, until there are few enough bars."""
    shortest = RESOLUTION * total_ms
    while True:
        merged = [(name, list(_merged(row, shortest))) for name, row in lanes]
        if sum(len(row) for _, row in merged) <= most:
            return merged
        shortest *= 2


def _merged(bars: Iterable[TimelineWork], shortest_ms: float) -> Iterator[TimelineWork]:
    """Yield bars; one that is shorter, and as near to the one before, is joined to it, as the longest of them."""
    joined, end_ms = list[list[TimelineWork]](), 0.0
    for bar in bars:
        near = bool(joined) and bar.start_ms - end_ms < shortest_ms
        if near and min(bar.duration_ms, end_ms - joined[-1][0].start_ms) < shortest_ms:
            joined[-1].append(bar)
            end_ms = max(end_ms, bar.end_ms)
        else:
            joined.append([bar])
            end_ms = bar.end_ms
    for group in joined:
        longest, start_ms = max(group, key=attrgetter("duration_ms")), group[0].start_ms
        duration_ms, pieces = max(bar.end_ms for bar in group) - start_ms, sum(bar.pieces for bar in group)
        yield replace(longest, start_ms=start_ms, duration_ms=duration_ms, pieces=pieces)
