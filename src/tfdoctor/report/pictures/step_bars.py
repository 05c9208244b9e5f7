"""The step as bars on one scale: now, as predicted with all changes, as measured; and its timeline.

The timeline's paths show each lane at a resolution of a thousandth of the step, so that the page stays small. A
browser that runs scripts replaces them by the bars of the JSON in the page.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tfdoctor.diagnosis import PARTS, Diagnosis, StepsSummary, Timeline, TimelineBar, Trials
from tfdoctor.report.run import BarPiece, axis
from tfdoctor.report.words import PART_LABELS, at_most, pace_ms, parts_of, segments
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, milliseconds, percent, share
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound

_EIGHTHS = " ▏▎▍▌▋▊▉"

LEAST = 0.004  # Share of the longest bar below which a part would be invisible


class StepBar(Record):
    """One bar with its label."""

    label: str
    time: str
    pieces: tuple[BarPiece, ...]


def step_bars(diagnosis: Diagnosis) -> tuple[StepBar, ...]:
    """Return the bar of the step now, and those with changes as far as they are known."""
    now = dict(parts_of(diagnosis.steps.shown_breakdown_ms))
    whole = sum(now.values())
    if not whole:
        return ()
    traced = pace_ms(diagnosis)  # then the headline has the untraced step: the time of a traced one would mislead
    bars = [("traced" if traced else "now", milliseconds(whole), now)]
    together = diagnosis.together
    after = together.after_ms if together else {}
    left = sum(after.values())
    if together and 0 < left < whole:
        time = f"{milliseconds(left)}{' at best' if together.bound is Bound.AT_MOST else ''}"
        if traced:
            time = f"{at_most(together.bound)}{share(1 - left / whole)} shorter"
        bars.append(("predicted", time, {part: after.get(part, 0.0) for part in PARTS}))
    measured = _measured(diagnosis.trials)
    if measured is not None:
        bars.append(("measured", f"{percent(measured)} shorter", {"measured": whole * (1 - measured)}))
    longest = max(sum(parts.values()) for _, _, parts in bars)
    return tuple(StepBar(label, time, pieces(parts, longest)) for label, time, parts in bars)


def _measured(trials: Trials | None) -> float | None:
    """Return the share that the changes save which were shown to help, all of them at once; None without any."""
    for row in trials.rows if trials else ():
        all_of_them = row.name == trials.together if trials and trials.together else row.kept
        if all_of_them and row.measured and not row.measured.of_run and row.examples == 1:
            return row.measured.share
    return None


def pieces(parts: Mapping[str, float], longest: float) -> tuple[BarPiece, ...]:
    """Return the parts of a step as pieces of a bar; ``longest`` is the time that is the whole width, ms."""
    found, left = [], 0.0
    for part, time in parts.items():
        width = time / longest
        if width > 0:
            words = f"{PART_LABELS.get(part, part)} {milliseconds(time)}"
            found.append(BarPiece(part, round(left, 4), round(max(width, LEAST), 4), words))
            left += width
    return tuple(found)


def lines(steps: StepsSummary, room: int) -> list[tuple[str, str, str]]:
    """Return the parts of the step as lines: the part, its figures in columns, and its bar of so many characters.

    The bar is in eighths of a character; a part that exists is never invisible.
    """
    rows = [(part, (PART_LABELS[part], time, of), fraction) for part, time, of, fraction in segments(steps)]
    widths = [max(map(len, column)) for column in zip(*(figures for _, figures, _ in rows), strict=True)]
    found: list[tuple[str, str, str]] = []
    for part, (label, time, of), fraction in rows:
        full, eighth = divmod(max(1, round(fraction * room * 8)), 8)
        figures = f"{label:<{widths[0]}}  {time:>{widths[1]}}  {of:>{widths[2]}}  "
        found.append((part, figures, "█" * full + _EIGHTHS[eighth].strip()))
    return found


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
