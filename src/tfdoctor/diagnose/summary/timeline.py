"""One typical step as a timeline: what each part of it did when, from the facts that the figures are made of."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from operator import attrgetter

from tfdoctor.diagnose.summary.marks import Rules, WorkMarks
from tfdoctor.diagnosis import Timeline, TimelineBar, TimelineLane
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.iterators import Iterators
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown, parts_in
from tfdoctor.facts.steps.steps import PS_PER_MS, Step, Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.device_work import Work
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.terms.verdict import Stage
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


def timeline(chart: Chart, marks: WorkMarks) -> Timeline | None:
    """Return the timeline of the steady step that is most like the typical one; None without steps.

    ``marks`` say which findings are about which of its work.
    """
    steps, breakdown = chart.get(Steps), chart.get(Breakdown)
    activity, device = chart.get(Activity), chart.get(Device)
    if steps is None or breakdown is None or activity is None or device is None:
        return None
    step = _typical(steps, breakdown)
    if step is None:
        return None
    rows = [
        ("step", [_pieces(step, activity, device, marks)]),
        *_input(chart, step, marks),
        *_launches(activity, step),
        *_devices(activity, step, marks),
    ]
    hidden = sum(len(row) for _, packed in rows for row in packed[MOST_ROWS:])
    lanes = [
        TimelineLane(name if not at else "", tuple(row))
        for name, packed in rows
        for at, row in enumerate(packed[:MOST_ROWS])
        if row
    ]
    total_ms = (step.end_ps - step.start_ps) / PS_PER_MS
    return Timeline(number=step.number, total_ms=total_ms, lanes=few(lanes, total_ms), hidden=hidden)


def _typical(steps: Steps, breakdown: Breakdown) -> Step | None:
    """Return the steady step whose parts differ least from those of the report's step."""
    distances = [
        (sum(abs(row[part] - breakdown.median[part]) for part in row), at)
        for at, (row, steady) in enumerate(zip(breakdown.steps, steps.steady, strict=True))
        if steady
    ]
    return steps.steps[min(distances)[1]] if distances else None


def _pieces(step: Step, activity: Activity, device: Device, marks: WorkMarks) -> list[TimelineBar]:
    """Return the step itself: each instant belongs to one part, as in the breakdown."""
    bars = [
        _bar(step, span, part, part, marks.of_part(part))
        for part, intervals in parts_in(step, activity, device).items()
        for span in intervals.spans
    ]
    return sorted(bars, key=attrgetter("start_ms"))


def _bar(step: Step, span: tuple[int, int], part: str, name: str, rules: Rules = ()) -> TimelineBar:
    """Return what of a span, in ps, lies within the step."""
    start, end = max(span[0], step.start_ps), min(span[1], step.end_ps)
    start_ms, time_ms = (start - step.start_ps) / PS_PER_MS, (end - start) / PS_PER_MS
    return TimelineBar(start_ms, time_ms, str(part), name, rules=rules)


def _input(chart: Chart, step: Step, marks: WorkMarks) -> Iterator[tuple[str, list[list[TimelineBar]]]]:
    """Yield the work of each stage of the input pipeline, consumers first."""
    iterators, pipeline = chart.get(Iterators), chart.get(InputPipeline)
    if iterators is None or pipeline is None:
        return
    for stage in pipeline.stages:
        node = iterators.nodes.get(stage.path)
        if node is None or stage.is_root:
            continue
        spans = _within(_work(node, iterators.nodes.values()), step)
        rules = marks.of_work(Stage.INPUT, stage.path)
        bars = [_bar(step, span, Stage.INPUT, stage.title, rules) for span in spans]
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


def _within(spans: Iterable[tuple[int, int]], step: Step) -> Iterator[tuple[int, int]]:
    return (span for span in spans if span[0] < step.end_ps and span[1] > step.start_ps)


def _launches(activity: Activity, step: Step) -> Iterator[tuple[str, list[list[TimelineBar]]]]:
    """Yield when the host launched operations: of accelerators only."""
    spans = activity.dispatch.within(step.start_ps, step.end_ps).spans
    if spans:
        yield "launches", [[_bar(step, span, Stage.HOST, "launch") for span in spans]]


def _devices(activity: Activity, step: Step, marks: WorkMarks) -> Iterator[tuple[str, list[list[TimelineBar]]]]:
    for stage, work in activity.stages.items():
        bars = _bars_of(work, step, stage, marks)
        if bars:
            yield LANES[stage], _packed(bars)


def _bars_of(work: Work, step: Step, stage: Stage, marks: WorkMarks) -> list[TimelineBar]:
    inside = work.only((work.start_ps < step.end_ps) & (work.end_ps > step.start_ps))
    names = [_named(label) for label in work.labels]
    rules = [marks.of_work(stage, CALLED.sub("", name), ran) for name, _, ran in work.labels]
    events = zip(inside.label.tolist(), inside.start_ps.tolist(), inside.end_ps.tolist(), strict=True)
    return [_bar(step, (start, end), stage, names[label], rules[label]) for label, start, end in events]


COPY_NUMBER = re.compile(r"_\d+$")  # What makes the name of an operation unique in its graph


def _named(label: tuple[str, str, str]) -> str:
    """Return the name of an operation as the model has it, with its type; without them what ran."""
    name, kind, ran = label
    if not name:
        return ran or kind
    name = COPY_NUMBER.sub("", CALLED.sub("", name))
    return f"{name} ({kind})" if kind and kind != name.rpartition("/")[2] else name


def _packed(bars: Sequence[TimelineBar]) -> list[list[TimelineBar]]:
    """Return the bars in rows, each in the first where the bar before it has ended."""
    rows: list[list[TimelineBar]] = []
    ends: list[tuple[float, int]] = []  # of the last bars, and their rows
    free: list[int] = []
    for bar in sorted(bars, key=attrgetter("start_ms")):
        while ends and ends[0][0] <= bar.start_ms:
            heappush(free, heappop(ends)[1])
        at = heappop(free) if free else len(rows)
        if at == len(rows):
            rows.append([])
        rows[at].append(bar)
        heappush(ends, (bar.start_ms + bar.duration_ms, at))
    return rows


def few(lanes: Sequence[TimelineLane], total_ms: float, most: int = MOST_BARS) -> tuple[TimelineLane, ...]:
    """Return the lanes with short neighbours merged, until there are few enough bars."""
    shortest, merged = RESOLUTION * total_ms, tuple(lanes)
    while True:
        merged = tuple(replace(lane, bars=tuple(_merged(lane.bars, shortest))) for lane in lanes)
        if sum(len(lane.bars) for lane in merged) <= most:
            return merged
        shortest *= 2


@dataclass(slots=True)
class Merging:
    """Neighbours that become one bar."""

    start_ms: float
    end_ms: float
    longest: TimelineBar
    pieces: int

    def join(self, bar: TimelineBar, end_ms: float) -> None:
        """Add a neighbour."""
        self.end_ms, self.pieces = max(self.end_ms, end_ms), self.pieces + bar.pieces
        if bar.duration_ms > self.longest.duration_ms:
            self.longest = bar

    def bar(self) -> TimelineBar:
        """Return them as one."""
        return replace(
            self.longest, start_ms=self.start_ms, duration_ms=self.end_ms - self.start_ms, pieces=self.pieces
        )


def _merged(bars: Iterable[TimelineBar], shortest_ms: float) -> Iterator[TimelineBar]:
    """Yield bars; one that is shorter, and as near to the one before, is joined to it."""
    held: Merging | None = None
    for bar in bars:
        end_ms = bar.start_ms + bar.duration_ms
        if held is not None and _joins(held, bar, shortest_ms):
            held.join(bar, end_ms)
            continue
        if held is not None:
            yield held.bar()
        held = Merging(bar.start_ms, end_ms, bar, bar.pieces)
    if held is not None:
        yield held.bar()


def _joins(held: Merging, bar: TimelineBar, shortest_ms: float) -> bool:
    near = bar.start_ms - held.end_ms < shortest_ms
    return near and min(bar.duration_ms, held.end_ms - held.start_ms) < shortest_ms
