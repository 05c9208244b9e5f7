"""The timeline of a typical step: as paths that every viewer draws, and as the data of the picture that zooms.

The paths show each lane at a resolution of a thousandth of the step, so that the page stays small. A browser that
runs scripts replaces them by the bars of the JSON in the page.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfdoctor.diagnosis import PARTS, Timeline, TimelineBar, TimelineLane
from tfdoctor.report.sentences import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, milliseconds, percent

WIDTH = 1000
"""Units of the width of a lane."""

HEIGHT = 14

MOST_TICKS = 5
"""Labels of the axis that fit beside each other on a phone."""

LAST_TICK = 0.85
"""Share of the axis beyond which a label would leave a phone's screen."""


@dataclass(frozen=True, slots=True)
class LanePath:
    """The bars of one part in a lane, as a path."""

    part: str
    path: str


@dataclass(frozen=True, slots=True)
class LanePicture:
    """One lane."""

    name: str  # "" where it continues the lane above
    groups: tuple[LanePath, ...]
    words: str


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A label of the axis; the position is a percentage of the width."""

    at: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineSection:
    """The timeline as the page shows it."""

    number: int
    total_ms: float
    caption: str
    lanes: tuple[LanePicture, ...]
    ticks: tuple[TimeTick, ...]


def section(timeline: Timeline | None) -> TimelineSection | None:
    """Return the timeline as text and paths; None without one."""
    if timeline is None or not timeline.total_ms > 0:
        return None
    return TimelineSection(
        number=timeline.number,
        total_ms=timeline.total_ms,
        caption=_caption(timeline),
        lanes=tuple(_lane(lane, timeline.total_ms) for lane in timeline.lanes),
        ticks=tuple(_ticks(timeline.total_ms)),
    )


def _part(bar: TimelineBar) -> str:
    return bar.part if bar.part in PARTS else "unknown"


def _caption(timeline: Timeline) -> str:
    sentences = [
        f"Step {timeline.number} took {milliseconds(timeline.total_ms)} and is the most like the typical step.",
        "The first lane shows what each moment of the step counts as; the other lanes show what ran meanwhile.",
    ]
    if timeline.hidden:
        pieces = counted(timeline.hidden, "piece").capitalize()
        sentences.append(f"{pieces} of work that ran beside many others have no bar.")
    return " ".join(sentences)


def _lane(lane: TimelineLane, total_ms: float) -> LanePicture:
    parts = dict.fromkeys(map(_part, lane.bars))
    groups = (
        LanePath(part, _path([bar for bar in lane.bars if _part(bar) == part], total_ms))
        for part in parts
    )
    return LanePicture(text.name(lane.name), tuple(groups), _words(lane, total_ms))


def _path(bars: Sequence[TimelineBar], total_ms: float) -> str:
    """Return rectangles as a path; bars that touch at this resolution are one."""
    return "".join(
        f"M{start} 0h{end - start}v{HEIGHT}h{start - end}z" for start, end in _spans(bars, total_ms)
    )


def _spans(bars: Sequence[TimelineBar], total_ms: float) -> Iterator[tuple[int, int]]:
    """Yield where rectangles begin and end, in units of the lane's width; each is at least one unit wide."""
    held: tuple[int, int] | None = None
    for bar in bars:
        start = math.floor(WIDTH * bar.start_ms / total_ms)
        end = max(start + 1, round(WIDTH * (bar.start_ms + bar.duration_ms) / total_ms))
        if held is not None and start <= held[1]:
            held = held[0], max(held[1], end)
            continue
        if held is not None:
            yield held
        held = start, end
    if held is not None:
        yield held


def _words(lane: TimelineLane, total_ms: float) -> str:
    """Return how long each part of a lane is, for those who do not see it."""
    times: dict[str, float] = {}
    for bar in lane.bars:
        times[_part(bar)] = times.get(_part(bar), 0.0) + bar.duration_ms
    shares = (f"{PART_LABELS[part]} {percent(time / total_ms)}" for part, time in times.items())
    return (
        f"{text.name(lane.name) or 'the same, at the same time'}: {', '.join(shares)} of the step."
    )


def _ticks(total_ms: float) -> Iterator[TimeTick]:
    """Yield labels at round times."""
    magnitude = 10.0 ** math.floor(math.log10(total_ms))
    steps = (factor * magnitude for factor in (0.1, 0.2, 0.5, 1.0, 2.0))
    step = next(step for step in steps if total_ms / step < MOST_TICKS + 1)
    for number in range(math.floor(LAST_TICK * total_ms / step) + 1):
        yield TimeTick(
            round(100 * number * step / total_ms, 2), milliseconds(number * step) if number else "0"
        )
