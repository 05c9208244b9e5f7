"""The timeline of a typical step: as paths that every viewer draws, and as the data of the picture that zooms.

The paths show each lane at a resolution of a thousandth of the step, so that the page stays small. A browser that
runs scripts replaces them by the bars of the JSON in the page.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tfdoctor.diagnosis.step import PARTS, Timeline, TimelineBar
from tfdoctor.report.run import axis
from tfdoctor.report.words import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, milliseconds, percent

WIDTH, HEIGHT = 1000, 14  # Units of the size of a lane


def caption(timeline: Timeline) -> str:
    """Return which step the timeline shows, and what its lanes are."""
    hidden = f"{counted(timeline.hidden, 'piece').capitalize()} of work that ran beside many others have no bar."
    return (
        f"Step {timeline.number} took {milliseconds(timeline.total_ms)} and is the most like the typical step. The "
        "first lane shows what each moment of the step counts as; the other lanes show what ran meanwhile."
        + (f" {hidden}" if timeline.hidden else "")
    )


def lanes(timeline: Timeline) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield each lane's name ("" where it continues the lane above), its words, and the path of each of its parts.

    The words say how long each part is, for those who do not see it.
    """
    for lane in timeline.lanes:
        by_part: dict[str, list[TimelineBar]] = defaultdict(list)
        for bar in lane.bars:
            part = timeline.parts[bar.part]
            by_part[part if part in PARTS else "unknown"].append(bar)
        shares = ", ".join(
            f"{PART_LABELS[part]} {percent(sum(bar.duration_ms for bar in bars) / timeline.total_ms)}"
            for part, bars in by_part.items()
        )
        name = text.name(lane.name)
        words = f"{name or 'the same, at the same time'}: {shares} of the step."
        yield name, words, {part: _path(bars, timeline.total_ms) for part, bars in by_part.items()}


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


def ticks(timeline: Timeline) -> Iterator[tuple[float, str]]:
    """Yield the labels of the axis, at round times."""
    magnitude = 10.0 ** math.floor(math.log10(timeline.total_ms))
    return axis(timeline.total_ms, (times * magnitude for times in (0.1, 0.2, 0.5, 1.0, 2.0)), milliseconds)
