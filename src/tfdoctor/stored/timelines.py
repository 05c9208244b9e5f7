"""The timeline in a report: names once, and bars as short rows of numbers."""

from collections.abc import Iterator, Mapping, Sequence

from tfdoctor.diagnosis import PARTS, Timeline, TimelineBar, TimelineLane
from tfdoctor.stored.check import JsonFault
from tfdoctor.terms.json_form import Json

US_PER_MS = 1000.0

UNKNOWN = PARTS.index("unknown")


def write(timeline: Timeline) -> Json:
    """Return the timeline; starts and durations in us, rounded to 0.1."""
    bars = [bar for lane in timeline.lanes for bar in lane.bars]
    names = {name: at for at, name in enumerate(dict.fromkeys(bar.name for bar in bars))}
    marks = {rules: at for at, rules in enumerate(dict.fromkeys(bar.rules for bar in bars))}
    return {
        "step": timeline.number,
        "total_ms": round(timeline.total_ms, 6),
        "parts": list(PARTS),
        "names": list(names),
        "rules": [list(rules) for rules in marks],
        "lanes": [
            {"name": lane.name, "bars": [_row(bar, names[bar.name], marks[bar.rules]) for bar in lane.bars]}
            for lane in timeline.lanes
        ],
        "hidden": timeline.hidden,
    }


def _row(bar: TimelineBar, name: int, rules: int) -> list[float]:
    part = PARTS.index(bar.part) if bar.part in PARTS else UNKNOWN
    start, duration = (round(US_PER_MS * ms, 1) for ms in (bar.start_ms, bar.duration_ms))
    return [start, duration, part, name, bar.pieces, rules]


# The places in a row that are numbers of entries of lists; earlier reports have no rules.
PLACES = ((2, "parts"), (3, "names"), (5, "rules"))


def faults(value: Mapping[str, Json]) -> Iterator[JsonFault]:
    """Yield what is wrong with a timeline that its schema does not say: a number of no entry."""
    for number, lane in enumerate(value["lanes"]):
        for at, row in enumerate(lane["bars"]):
            for place, entries in PLACES[: len(row) - 3]:
                if row[place] >= len(value.get(entries, ())):
                    path = f"timeline.lanes[{number}].bars[{at}][{place}]"
                    yield JsonFault(path, f"expected the number of one of {entries}, not {row[place]}")


def read(value: Mapping[str, Json]) -> Timeline:
    """Return the timeline, which has no fault."""
    lanes = [TimelineLane(lane["name"], tuple(_bar(row, value) for row in lane["bars"])) for lane in value["lanes"]]
    return Timeline(
        number=value["step"], total_ms=float(value["total_ms"]), lanes=tuple(lanes), hidden=value["hidden"]
    )


def _bar(row: Sequence[Json], value: Mapping[str, Json]) -> TimelineBar:
    start_us, duration_us, part, name, pieces, *rules = row
    return TimelineBar(
        start_us / US_PER_MS,
        duration_us / US_PER_MS,
        value["parts"][part],
        value["names"][name],
        pieces,
        tuple(value["rules"][rules[0]]) if rules else (),
    )
