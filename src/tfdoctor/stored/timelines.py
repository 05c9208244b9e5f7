"""The timeline in a report: names once, and bars as short rows of numbers."""

from collections.abc import Mapping, Sequence

from tfdoctor.diagnosis import PARTS, Timeline, TimelineBar, TimelineLane
from tfdoctor.terms.json_form import Json, expect, expect_number

US_PER_MS = 1000.0

UNKNOWN = PARTS.index("unknown")


def write(timeline: Timeline) -> Json:
    """Return the timeline; starts and durations in us, rounded to 0.1."""
    bars = [bar for lane in timeline.lanes for bar in lane.bars]
    names = {name: at for at, name in enumerate(dict.fromkeys(bar.name for bar in bars))}
    return {
        "step": timeline.number,
        "total_ms": round(timeline.total_ms, 6),
        "parts": list(PARTS),
        "names": list(names),
        "lanes": [
            {"name": lane.name, "bars": [_row(bar, names[bar.name]) for bar in lane.bars]}
            for lane in timeline.lanes
        ],
        "hidden": timeline.hidden,
    }


def _row(bar: TimelineBar, name: int) -> list[float]:
    part = PARTS.index(bar.part) if bar.part in PARTS else UNKNOWN
    start, duration = (round(US_PER_MS * ms, 1) for ms in (bar.start_ms, bar.duration_ms))
    return [start, duration, part, name, bar.pieces]


def read(value: Json) -> Timeline:
    """Return the timeline.

    Raises:
        ValueError, KeyError, IndexError: it is damaged.
    """
    found = expect(value, Mapping, "an object")
    parts, names = (_texts(found[key]) for key in ("parts", "names"))
    lanes = [
        TimelineLane(
            expect(lane["name"], str, "a text"),
            tuple(_bar(row, parts, names) for row in lane["bars"]),
        )
        for lane in found["lanes"]
    ]
    total_ms = expect_number(found["total_ms"])
    return Timeline(
        number=found["step"], total_ms=total_ms, lanes=tuple(lanes), hidden=found["hidden"]
    )


def _texts(value: Json) -> list[str]:
    return [expect(text, str, "a text") for text in expect(value, list, "a list")]


def _bar(row: Sequence[Json], parts: Sequence[str], names: Sequence[str]) -> TimelineBar:
    start_us, duration_us, part, name, pieces = row
    return TimelineBar(
        start_us / US_PER_MS, duration_us / US_PER_MS, parts[part], names[name], pieces
    )
