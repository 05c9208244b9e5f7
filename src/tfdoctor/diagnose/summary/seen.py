"""What was seen in a part of the step without a finding."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from tfdoctor.diagnosis import Seen
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.facts.step_time.host_time import PartEvents
from tfdoctor.facts.step_time.sampled_steps import StackSamples
from tfdoctor.facts.step_time.timed_line import LineWork
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import Location, Stage

SHOWN = 3  # Lines, operations or stages: enough to know where to look
FEW = 5  # Stack samples below which a line's share is not shown: with five it is uncertain by 45 %

# What a line waits for while it does nothing itself.
WITHIN_CALL = {
    LineWork.ENTERING: "entering a compiled function",
    LineWork.DISPATCHING: "between the operations of a compiled function",
    LineWork.LOOPING: "the framework's own Python",  # the loop may be the user's
}

Row = tuple[str, float, Location | None]


def seen_in(chart: Chart, part: str, left_ms: float, named: Mapping[str, float] | None = None) -> tuple[Seen, ...]:
    """Return what takes most of the ``left_ms`` of a part: lines of Python, operations or stages of the input.

    ``named`` maps the subjects of findings' effects (operations, stages) to the ms that these name: that much
    of a subject is left out. All times are ms per training step, as traced.
    """
    named = named or {}
    match part:
        case Stage.HOST | Stage.BETWEEN:
            return _lines(chart, Stage(part)) or _within(_events(chart.get(PartEvents), part), left_ms)
        case Stage.DEVICE:
            return _within(_operations(chart.get(Operations), named), left_ms)
        case Stage.INPUT:
            return _within(_stages(chart.get(InputPipeline), named), left_ms)
        case _:
            return ()


def _within(rows: Iterable[Row], left_ms: float) -> tuple[Seen, ...]:
    """Return the longest rows, each as its share of the time that is left where all together take longer.

    They do where threads overlap, or where a finding names time without its operations.
    """
    ordered = sorted(rows, key=lambda row: -row[1])
    whole = sum(time for _, time, _ in ordered)
    scale = min(1.0, left_ms / whole) if whole else 0.0
    return tuple(Seen(what, ms(time * scale), at) for what, time, at in ordered[:SHOWN] if time)


def _lines(chart: Chart, part: Stage) -> tuple[Seen, ...]:
    """Return the lines by their share of the part's stack samples, all samples of a line together.

    Samples without a time were taken between calls: they say nothing of the host's part of a call.
    """
    seen: Counter[tuple[str, Location | None]] = Counter()
    timed, untimed = chart.get(HostLines), chart.get(StackSamples)
    if timed:
        for line in timed.parts.get(part, ()):
            what = line.callback or WITHIN_CALL.get(line.work, "Python")
            seen[what, line.at] += line.seen
    elif untimed and part is Stage.BETWEEN:
        for place in untimed.places:
            seen[place.callback or "Python", place.at] += place.seen
    if seen.total() < FEW:
        return ()
    return tuple(Seen(what, ratio(number / seen.total()), at) for (what, at), number in seen.most_common(SHOWN))


def _events(events: PartEvents | None, part: str) -> list[Row]:
    """Return the events of the host's threads by time."""
    rows = events.by_part.get(part, ()) if events else ()
    return [(f"{row.name} (thread {row.thread})", row.ms, None) for row in rows]


def _operations(operations: Operations | None, named: Mapping[str, float]) -> list[Row]:
    """Return the operation types by time, with the line of the longest operation of each."""
    times: dict[str, float] = defaultdict(float)
    places: dict[str, Location | None] = {}
    for row in operations.rows if operations else ():
        left = row.ms - named.get(row.name, 0.0)
        if left > 0:
            times[row.type] += left
            places.setdefault(row.type, row.at)
    return [(kind, time, places[kind]) for kind, time in times.items()]


def _stages(pipeline: InputPipeline | None, named: Mapping[str, float]) -> list[Row]:
    """Return the stages of the input that no finding names, by their work."""
    stages = pipeline.stages if pipeline else ()
    left = (stage for stage in stages if not stage.is_root and stage.path not in named)
    return [(stage.title, stage.work_ms, stage.at) for stage in left]
