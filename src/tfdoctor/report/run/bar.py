"""The run as a bar in time order: its stretches as pieces of a width, and labels of its axis."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from tfdoctor.diagnosis import PhaseSegment, RunAccount
from tfdoctor.report.run.words import times
from tfdoctor.report.words import is_known
from tfdoctor.terms.humanize import duration, location
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record

LEAST = 0.002  # Share of the bar below which a stretch would be invisible
# More pieces than that are thinner than a pixel on a phone; each cell shows the phase that most of it is.
MOST_PIECES = 500

# Round distances between the labels of the axis.
STEPS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000),
)

NAMED = 0.02  # Share of the bar below which a piece has no room for a name, on the widest page
MOST_TICKS = 5  # Labels that fit beside each other on a phone
LAST_TICK = 0.85  # Share of the axis beyond which a label would leave a phone's screen


class RunBarPiece(Record):
    """A piece of the bar: where it begins and how wide it is, shares of the run; phase, times and line in words."""

    phase: Phase
    left: float
    width: float
    words: str

    @property
    def name(self) -> str:
        """What is written on it where the page has room: its phase; "" on a narrow one, and where none is known."""
        known = self.phase is not Phase.UNNAMED
        return str(self.phase) if known and self.width >= NAMED else ""


class RunTick(Record):
    """A label of the axis; the position is a percentage of the width."""

    at: float
    label: str


def stretches(run: RunAccount) -> tuple[PhaseSegment, ...]:
    """Return the stretches of the run in order, without overlaps; phase by phase where their order is unknown."""
    drawable = [one for one in run.segments if is_known(one.start_ms) and is_known(one.end_ms)]
    found: list[PhaseSegment] = []
    for one in sorted(drawable or _by_phase(run), key=lambda one: one.start_ms):
        start = max(one.start_ms, found[-1].end_ms if found else 0.0)
        end = min(one.end_ms, run.total_ms)
        if end <= start:
            continue
        last = found[-1] if found else None
        if last and (last.phase, last.at, last.end_ms) == (one.phase, one.at, start):
            found[-1] = replace(last, end_ms=end)
        else:
            found.append(replace(one, start_ms=start, end_ms=end))
    return tuple(found)


def pieces(run: RunAccount) -> tuple[RunBarPiece, ...]:
    """Return the stretches as pieces of the bar; cells of the bar where there are too many stretches.

    Cells of one phase beside each other are one piece, with their line where it is the same.
    """
    shown = list(stretches(run))
    if len(shown) > MOST_PIECES:
        shown = []
        for one in cells(run, MOST_PIECES):
            if shown and (held := shown[-1]).phase is one.phase:
                at = held.at if held.at == one.at else None
                shown[-1] = replace(held, end_ms=one.end_ms, at=at)
            else:
                shown.append(one)
    return tuple(_piece(one, run.total_ms) for one in shown)


def cells(run: RunAccount, number: int) -> tuple[PhaseSegment, ...]:
    """Return the run in so many cells, each with the stretch that takes most of it; UNNAMED where none does."""
    found, size = stretches(run), run.total_ms / number
    filled = []
    at = 0
    for cell in range(number):
        start, end = cell * size, (cell + 1) * size
        while at < len(found) and found[at].end_ms <= start:
            at += 1
        inside = list(_inside(found, at, start, end))
        most = max(inside, key=lambda pair: pair[1], default=None)
        whose = most[0] if most else PhaseSegment(phase=Phase.UNNAMED, start_ms=0, end_ms=0)
        filled.append(replace(whose, start_ms=start, end_ms=end))
    return tuple(filled)


def ticks(run: RunAccount) -> Iterator[RunTick]:
    """Yield labels at round times."""
    seconds = run.total_ms / 1000
    step = next((s for s in STEPS_S if seconds / s < MOST_TICKS + 1), seconds)
    number = 0
    while seconds > 0 and number * step <= LAST_TICK * seconds:
        label = duration(1000 * number * step) if number else "0"
        yield RunTick(round(100 * number * step / seconds, 2), label)
        number += 1


def _inside(
    found: Sequence[PhaseSegment], at: int, start: float, end: float
) -> Iterator[tuple[PhaseSegment, float]]:
    """Yield the stretches that lie in a cell, from one of them on, with the time of each in it."""
    while at < len(found) and found[at].start_ms < end:
        yield found[at], min(end, found[at].end_ms) - max(start, found[at].start_ms)
        at += 1


def _by_phase(run: RunAccount) -> list[PhaseSegment]:
    edges = pairwise(accumulate(times(run).values(), initial=0.0))
    return [
        PhaseSegment(phase=phase, start_ms=start, end_ms=end)
        for phase, (start, end) in zip(times(run), edges, strict=True)
    ]


def _piece(one: PhaseSegment, total_ms: float) -> RunBarPiece:
    left, width = one.start_ms / total_ms, (one.end_ms - one.start_ms) / total_ms
    start, end = duration(one.start_ms) if one.start_ms > 0 else "0", duration(one.end_ms)
    facts = (
        f"{one.phase!s}: {duration(one.end_ms - one.start_ms)}",
        f"at {end}" if start == end else f"from {start} to {end}",
        location(one.at),
    )
    shown = round(max(width, LEAST), 5)
    return RunBarPiece(one.phase, round(min(left, 1 - shown), 5), shown, ", ".join(filter(None, facts)))
