"""The timeline of a typical step: as paths that every viewer draws, and as the data of the picture that zooms.

The paths show each lane at a resolution of a thousandth of the step, so that the page stays small. A browser that
runs scripts replaces them by the bars of the JSON in the page.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tfdoctor.diagnosis import PARTS, Timeline, TimelineBar, TimelineLane
from tfdoctor.report.words import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.record import Record

WIDTH = 1000  # Units of the width of a lane

HEIGHT = 14

MOST_TICKS = 5  # Labels of the axis that fit beside each other on a phone
LAST_TICK = 0.85  # Share of the axis beyond which a label would leave a phone's screen


class LanePath(Record):
    """The bars of one part in a lane, as a path."""

    part: str
    path: str


class LanePicture(Record):
    """One lane."""

    name: str  # "" where it continues the lane above
    groups: tuple[LanePath, ...]
    words: str


class TimeTick(Record):
    """A label of the axis; the position is a percentage of the width."""

    at: float
    label: str


class TimelineSection(Record, kw_only=True):
    """The timeline as the page shows it."""

    number: int
    total_ms: float
    caption: str
    lanes: tuple[LanePicture, ...]
    ticks: tuple[TimeTick, ...]
    rules: frozenset[str]  # whose findings are about work in it


def section(timeline: Timeline | None) -> TimelineSection | None:
    """Return the timeline as text and paths; None without one."""
    if timeline is None or not timeline.total_ms > 0:
        return None
    caption = [
        f"Step {timeline.number} took {milliseconds(timeline.total_ms)} and is the most like the typical step.",
        "The first lane shows what each moment of the step counts as; the other lanes show what ran meanwhile.",
    ]
    if timeline.hidden:
        pieces = counted(timeline.hidden, "piece").capitalize()
        caption.append(f"{pieces} of work that ran beside many others have no bar.")
    return TimelineSection(
        number=timeline.number,
        total_ms=timeline.total_ms,
        caption=" ".join(caption),
        lanes=tuple(_lane(lane, timeline.total_ms) for lane in timeline.lanes),
        ticks=tuple(_ticks(timeline.total_ms)),
        rules=frozenset(rule for lane in timeline.lanes for bar in lane.bars for rule in bar.rules),
    )


def _lane(lane: TimelineLane, total_ms: float) -> LanePicture:
    """Return a lane, and in words how long each of its parts is, for those who do not see it."""
    by_part: dict[str, list[TimelineBar]] = defaultdict(list)
    for bar in lane.bars:
        by_part[bar.part if bar.part in PARTS else "unknown"].append(bar)
    shares = [
        f"{PART_LABELS[part]} {percent(sum(bar.duration_ms for bar in bars) / total_ms)}"
        for part, bars in by_part.items()
    ]
    name = text.name(lane.name)
    words = f"{name or 'the same, at the same time'}: {', '.join(shares)} of the step."
    paths = (LanePath(part, _path(bars, total_ms)) for part, bars in by_part.items())
    return LanePicture(name, tuple(paths), words)


def _path(bars: Sequence[TimelineBar], total_ms: float) -> str:
    """Return rectangles as a path, in units of the lane's width.

    Each is at least one unit wide; bars that touch at this resolution are one.
    """
    spans: list[tuple[int, int]] = []
    for bar in bars:
        start = math.floor(WIDTH * bar.start_ms / total_ms)
        end = max(start + 1, round(WIDTH * (bar.start_ms + bar.duration_ms) / total_ms))
        if spans and start <= spans[-1][1]:
            first, last = spans[-1]
            spans[-1] = first, max(last, end)
        else:
            spans.append((start, end))
    return "".join(f"M{start} 0h{end - start}v{HEIGHT}h{start - end}z" for start, end in spans)


def _ticks(total_ms: float) -> Iterator[TimeTick]:
    """Yield labels at round times."""
    magnitude = 10.0 ** math.floor(math.log10(total_ms))
    steps = (factor * magnitude for factor in (0.1, 0.2, 0.5, 1.0, 2.0))
    step = next(step for step in steps if total_ms / step < MOST_TICKS + 1)
    for number in range(math.floor(LAST_TICK * total_ms / step) + 1):
        yield TimeTick(round(100 * number * step / total_ms, 2), milliseconds(number * step) if number else "0")
