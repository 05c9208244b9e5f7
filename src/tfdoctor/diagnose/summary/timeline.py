"""One typical step as a timeline: what each part of it did when, from the facts that the figures are made of."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from operator import attrgetter
from typing import Self

from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.step import PARTS, US_PER_MS, Timeline, TimelineBar, TimelineLane
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.iterators import Iterators
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown, parts_in
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.verdict import Finding, Stage, StepWork
from tfdoctor.trace import Intervals

# Bars of all lanes: a picture as wide as a screen shows no more of them apart, and zoom has something left.
MOST_BARS = 1700
# Lanes of work that runs at the same time: on a CPU of 64 cores the first ones show what the others do.
MOST_ROWS = 8
# Share of the step below which neighbouring pieces of work are one bar, doubled until the bars are few enough.
RESOLUTION = 1 / 20_000

# Names of the lanes of devices.
LANES = {
    Stage.DEVICE: "operations",
    Stage.TRANSFER: "copies",
    Stage.COLLECTIVE: "collectives",
    Stage.INPUT: "infeed",
}

COPY_NUMBER = re.compile(r"_\d+$")  # What makes the name of an operation unique in its graph

Rules = tuple[str, ...]
Rows = list[list["Work"]]  # of work that does not overlap


class Work(Record):
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


class WorkMarks(Record):
    """The rules of findings by the work that they are about: its stage and its name, "" for all work of the stage.

    A name is that of an operation or of a stage of the input, or a StepWork: time of the part that is neither.
    """

    rules: Mapping[tuple[str, str], Rules] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Result]) -> Self:
        """Take the effects that make work shorter: what else costs time for it is not what is wrong."""
        found = defaultdict[tuple[str, str], set[str]](set)
        for result in results:
            for effect in result.outcome.effects if isinstance(result.outcome, Finding) else ():
                for name in (effect.subject, *effect.parts) if effect.names else ():
                    found[effect.stage, name].add(result.rule.name)
        return cls({work: tuple(sorted(rules)) for work, rules in found.items()})

    def of_part(self, part: str) -> Rules:
        """Return the rules about a part of the step."""
        own = {rule for work in StepWork for rule in self.rules.get((part, work), ())}
        return (*self.rules.get((part, ""), ()), *sorted(own))

    def of_work(self, stage: Stage, *names: str) -> Rules:
        """Return the rules about work of a stage that goes by one of these names."""
        own = (rule for name in ("", *names) for rule in self.rules.get((stage, name), ()))
        return tuple(dict.fromkeys(own))


def timeline(chart: Chart, marks: WorkMarks) -> Timeline | None:
    """Return the timeline of the steady step that is most like the typical one; None without steps.

    ``marks`` say which findings are about which of its work.
    """
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
    step = steps.steps[min(distances)[1]]
    pieces = [  # each instant belongs to one part, as in the breakdown
        _bar(step, span, part, part, rules)
        for part, intervals in parts_in(step, activity, device).items()
        for rules in [marks.of_part(part)]
        for span in intervals.spans
    ]
    rows = [
        ("step", [sorted(pieces, key=attrgetter("start_ms"))]),
        *_input(chart, step, marks),
        *_devices(activity, step, marks),
    ]
    hidden = sum(len(row) for _, packed in rows for row in packed[MOST_ROWS:])
    lanes = [
        (name if not at else "", row) for name, packed in rows for at, row in enumerate(packed[:MOST_ROWS]) if row
    ]
    total_ms = (step.end_ps - step.start_ps) / PS_PER_MS
    return drawn(step.number, total_ms, few(lanes, total_ms), hidden)


def drawn(number: int, total_ms: float, lanes: Sequence[tuple[str, Sequence[Work]]], hidden: int = 0) -> Timeline:
    """Return the timeline of a step, whose lanes have work with these names."""
    every = [work for _, row in lanes for work in row]
    names = {name: at for at, name in enumerate(dict.fromkeys(work.name for work in every))}
    rules = {own: at for at, own in enumerate(dict.fromkeys(work.rules for work in every))}

    def bar(work: Work) -> TimelineBar:
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


def _bar(step: Step, span: tuple[int, int], part: str, name: str, rules: Rules = ()) -> Work:
    """Return what of a span, in ps, lies within the step."""
    start, end = max(span[0], step.start_ps), min(span[1], step.end_ps)
    start_ms, time_ms = (start - step.start_ps) / PS_PER_MS, (end - start) / PS_PER_MS
    return Work(start_ms, time_ms, str(part), name, rules=rules)


def _input(chart: Chart, step: Step, marks: WorkMarks) -> Iterator[tuple[str, Rows]]:
    """Yield the work of each stage of the input pipeline, consumers first."""
    iterators, pipeline = chart.get(Iterators), chart.get(InputPipeline)
    if iterators is None or pipeline is None:
        return
    for stage in pipeline.stages:
        node = iterators.nodes.get(stage.path)
        if node is None or stage.is_root:
            continue
        rules = marks.of_work(Stage.INPUT, stage.path)
        bars = [
            _bar(step, span, Stage.INPUT, stage.title, rules)
            for span in _work(node, iterators.nodes.values())
            if span[0] < step.end_ps and span[1] > step.start_ps
        ]
        yield f"input: {stage.title}", _packed(bars)


def _work(node: Node, nodes: Iterable[Node]) -> Iterable[tuple[int, int]]:
    """Return when a stage worked: its function; without one its calls, without those of the stages upstream.

    The calls of a stage with threads of its own only wait for what these make.
    """
    if node.function:
        return node.function
    if node.asynchronous:
        return ()
    upstream = [span for other in nodes if other.parent == node.path for span in other.called]
    return (Intervals.union(node.called) - Intervals.union(upstream)).spans


def _devices(activity: Activity, step: Step, marks: WorkMarks) -> Iterator[tuple[str, Rows]]:
    """Yield when the host launched operations, of accelerators only, and what the devices did."""
    if spans := activity.dispatch.within(step.start_ps, step.end_ps).spans:
        yield "launches", [[_bar(step, span, Stage.HOST, "launch") for span in spans]]
    for stage, work in activity.stages.items():
        inside = work.only((work.start_ps < step.end_ps) & (work.end_ps > step.start_ps))
        names = [_named(*label) for label in work.labels]
        rules = [marks.of_work(stage, CALLED.sub("", name), ran) for name, _, ran in work.labels]
        events = zip(inside.label.tolist(), inside.start_ps.tolist(), inside.end_ps.tolist(), strict=True)
        bars = [_bar(step, (start, end), stage, names[label], rules[label]) for label, start, end in events]
        if bars:
            yield LANES[stage], _packed(bars)


def _named(name: str, kind: str, ran: str) -> str:
    """Return the name of an operation as the model has it, with its type; without them what ran."""
    if not name:
        return ran or kind
    name = COPY_NUMBER.sub("", CALLED.sub("", name))
    return f"{name} ({kind})" if kind and kind != name.rpartition("/")[2] else name


def _packed(bars: Sequence[Work]) -> Rows:
    """Return the bars in rows, each in the first where the bar before it has ended."""
    rows: Rows = []
    ends, free = list[tuple[float, int]](), list[int]()  # the ends of the last bars with their rows, and free rows
    for bar in sorted(bars, key=attrgetter("start_ms")):
        while ends and ends[0][0] <= bar.start_ms:
            heappush(free, heappop(ends)[1])
        at = heappop(free) if free else len(rows)
        if at == len(rows):
            rows.append([])
        rows[at].append(bar)
        heappush(ends, (bar.end_ms, at))
    return rows


def few(
    lanes: Sequence[tuple[str, Sequence[Work]]], total_ms: float, most: int = MOST_BARS
) -> list[tuple[str, list[Work]]]:
    """Return the lanes with short neighbours merged, until there are few enough bars."""
    shortest = RESOLUTION * total_ms
    while True:
        merged = [(name, list(_merged(row, shortest))) for name, row in lanes]
        if sum(len(row) for _, row in merged) <= most:
            return merged
        shortest *= 2


def _merged(bars: Iterable[Work], shortest_ms: float) -> Iterator[Work]:
    """Yield bars; one that is shorter, and as near to the one before, is joined to it, as the longest of them."""
    longest: Work | None = None
    start_ms, end_ms, pieces = 0.0, 0.0, 0
    for bar in bars:
        if longest is not None:
            short = min(bar.duration_ms, end_ms - start_ms) < shortest_ms
            if short and bar.start_ms - end_ms < shortest_ms:
                end_ms, pieces = max(end_ms, bar.end_ms), pieces + bar.pieces
                longest = max(longest, bar, key=attrgetter("duration_ms"))
                continue
            yield replace(longest, start_ms=start_ms, duration_ms=end_ms - start_ms, pieces=pieces)
        start_ms, end_ms, longest, pieces = bar.start_ms, bar.end_ms, bar, bar.pieces
    if longest is not None:
        yield replace(longest, start_ms=start_ms, duration_ms=end_ms - start_ms, pieces=pieces)
