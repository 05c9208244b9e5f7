"""The run as a bar in time order, the pieces that bars consist of, and the labels of an axis of time."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

from tfdoctor.diagnosis.work import RunAccount
from tfdoctor.report.run.words import times
from tfdoctor.report.words import is_known
from tfdoctor.terms.humanize import duration, location
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.run_time import PhaseSegment

LEAST = 0.002  # Share of the bar below which a stretch would be invisible
# More pieces than that are thinner than a pixel on a phone; each cell shows the phase that most of it is.
MOST_PIECES = 500
NAMED = 0.02  # Share of the bar below which a piece has no room for a name, on the widest page

MOST_TICKS = 5  # Labels that fit beside each other on a phone
LAST_TICK = 0.85  # Share of the axis beyond which a label would leave a phone's screen


class BarPiece(Record):
    """A part of a bar: where it begins and how wide it is, shares of the longest bar."""

    part: str  # of PARTS or a phase, as style sheets name it; "measured" where the parts of a step are not known
    left: float
    width: float
    words: str
    name: str = ""  # what is written on it where the page has room


def pieces(run: RunAccount) -> tuple[BarPiece, ...]:
    """Return the stretches of the run as pieces of its bar; cells of the bar where there are too many stretches.

    Cells of one phase beside each other are one piece, with their line where it is the same.
    """
    shown = stretches(run)
    if len(shown) > MOST_PIECES:
        shown = []
        for one in cells(run, MOST_PIECES):
            if shown and (held := shown[-1]).phase is one.phase:
                shown[-1] = replace(held, end_ms=one.end_ms, at=held.at if held.at == one.at else None)
            else:
                shown.append(one)
    return tuple(_piece(one, run.total_ms) for one in shown)


def _piece(one: PhaseSegment, total_ms: float) -> BarPiece:
    width = round(max((one.end_ms - one.start_ms) / total_ms, LEAST), 5)
    left = round(min(one.start_ms / total_ms, 1 - width), 5)
    start, end = duration(one.start_ms) if one.start_ms > 0 else "0", duration(one.end_ms)
    when = f"at {end}" if start == end else f"from {start} to {end}"
    took = f"{one.phase}: {duration(one.end_ms - one.start_ms)}"
    words = ", ".join(filter(None, (took, when, location(one.at))))
    named = width >= NAMED and one.phase is not Phase.UNNAMED
    return BarPiece(one.phase.name.lower(), left, width, words, str(one.phase) if named else "")


def stretches(run: RunAccount) -> list[PhaseSegment]:
    """Return the stretches of the run in order, without overlaps; phase by phase where their order is unknown."""
    drawn = [one for one in run.segments if is_known(one.start_ms) and is_known(one.end_ms)]
    if not drawn:
        edges = pairwise(accumulate(times(run).values(), initial=0.0))
        drawn = [
            PhaseSegment(phase=phase, start_ms=start, end_ms=end)
            for phase, (start, end) in zip(times(run), edges, strict=True)
        ]
    found: list[PhaseSegment] = []
    for one in sorted(drawn, key=lambda one: one.start_ms):
        start = max(one.start_ms, found[-1].end_ms if found else 0.0)
        end = min(one.end_ms, run.total_ms)
        last = found[-1] if found else None
        if end > start and last and (last.phase, last.at, last.end_ms) == (one.phase, one.at, start):
            found[-1] = replace(last, end_ms=end)
        elif end > start:
            found.append(replace(one, start_ms=start, end_ms=end))
    return found


def cells(run: RunAccount, number: int) -> Iterator[PhaseSegment]:
    """Yield the run in so many cells, each with the stretch that takes most of it; UNNAMED where none does."""
    found, size, at = stretches(run), run.total_ms / number, 0
    for cell in range(number):
        start, end = cell * size, (cell + 1) * size
        while at < len(found) and found[at].end_ms <= start:
            at += 1
        whose, most_ms, after = PhaseSegment(phase=Phase.UNNAMED, start_ms=0, end_ms=0), -math.inf, at
        while after < len(found) and found[after].start_ms < end:
            time_ms = min(end, found[after].end_ms) - max(start, found[after].start_ms)
            whose, most_ms = (found[after], time_ms) if time_ms > most_ms else (whose, most_ms)
            after += 1
        yield replace(whose, start_ms=start, end_ms=end)


def axis(total: float, steps: Iterable[float], label: Callable[[float], str]) -> Iterator[tuple[float, str]]:
    """Yield the labels of an axis at multiples of a round step, each at a percentage of the width."""
    step = next((step for step in steps if total / step < MOST_TICKS + 1), total)
    number = 0
    while total > 0 and number * step <= LAST_TICK * total:
        yield round(100 * number * step / total, 2), label(number * step) if number else "0"
        number += 1
