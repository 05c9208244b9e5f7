"""What was seen in a part of the step that no rule explains."""

from collections import Counter, defaultdict

from tfdoctor.diagnosis import Seen
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.part_events import PartEvents
from tfdoctor.facts.step_time.stack_samples import StackSamples
from tfdoctor.units import ms, ratio
from tfdoctor.verdict import Location, Stage

SHOWN = 3
"""Lines, operations or stages: enough to know where to look."""


def seen_in(chart: Chart, part: str) -> tuple[Seen, ...]:
    """Return what takes most of a part: lines of Python, operations or stages of the input."""
    match part:
        case Stage.HOST | Stage.BETWEEN:
            return _lines(chart.get(StackSamples)) or _events(chart.get(PartEvents), part)
        case Stage.DEVICE:
            return _operations(chart.get(Operations), chart.get(Unexplained))
        case Stage.INPUT:
            return _stages(chart.get(InputPipeline))
        case _:
            return ()


def _lines(samples: StackSamples | None) -> tuple[Seen, ...]:
    """Return the lines by their share of the stack samples, all samples of a line together."""
    if samples is None or not samples.sample_count:
        return ()
    seen: Counter[tuple[str, Location | None]] = Counter()
    for place in samples.places:
        seen[place.callback, place.at] += place.seen
    return tuple(
        Seen(callback or "Python", ratio(number / samples.sample_count), at)
        for (callback, at), number in seen.most_common(SHOWN)
    )


def _events(events: PartEvents | None, part: str) -> tuple[Seen, ...]:
    """Return the events of the host's threads by time."""
    rows = events.by_part.get(part, ())[:SHOWN] if events else ()
    return tuple(Seen(f"{row.name} (thread {row.thread})", ms(row.ms)) for row in rows)


def _operations(operations: Operations | None, left: Unexplained | None) -> tuple[Seen, ...]:
    """Return the types of operations that no specific finding names, with the line of the longest of each."""
    named = left.subjects if left else frozenset()
    if operations is None:
        return ()
    times: dict[str, float] = defaultdict(float)
    places: dict[str, Location | None] = {}
    for row in operations.rows:
        if named & {row.name, row.layer}:
            continue
        times[row.type] += row.ms
        places.setdefault(row.type, row.at)
    most = sorted(times, key=lambda kind: -times[kind])[:SHOWN]
    return tuple(Seen(kind, ms(times[kind]), places[kind]) for kind in most)


def _stages(pipeline: InputPipeline | None) -> tuple[Seen, ...]:
    if pipeline is None:
        return ()
    stages = (stage for stage in pipeline.stages if not stage.is_root)
    most = sorted(stages, key=lambda stage: -stage.work_ms)[:SHOWN]
    return tuple(Seen(stage.title, ms(stage.work_ms), stage.at) for stage in most)
