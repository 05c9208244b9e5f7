"""The run in time order, for its bar: stretches of one phase each.

Calls that the log tells one by one have exact begins and ends. The rest of each bucket is divided as its pieces
are, in the order of Phase.
"""

from dataclasses import dataclass
from itertools import takewhile

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.call_phases import OF_CALL
from tfdoctor.facts.phases.run_course import MS, RunCourse
from tfdoctor.facts.phases.run_pieces import Stretch, first_steps
from tfdoctor.facts.run.program import Places
from tfdoctor.recording.program import SourceLine
from tfdoctor.terms.run_time import PhaseSegment

MOST_SPANS = 400  # Stretches of the bar: it is at most 1,280 pixels wide, and one of 3 can just be pointed at
LEAST_SHARE = 0.1  # Share of a bucket's time from which a phase in it gets a stretch of its own


@dataclass(slots=True)
class _Part:
    """A stretch being put together; ``lines`` has the ms at each line."""

    phase: Phase
    start: float
    end: float
    lines: dict[SourceLine | None, float]

    @property
    def length(self) -> float:
        return self.end - self.start


def phase_spans(parts: Sequence[Stretch], course: RunCourse, place: Places) -> tuple[PhaseSegment, ...]:
    """Return at most 400 stretches of the run without gaps."""
    begin = parts[0].start if parts else 0.0
    exact, at = list(_exact(course)), 0
    found: list[_Part] = []
    for stretch in parts:
        while at < len(exact) and exact[at].end <= stretch.start:
            at += 1
        own = takewhile(lambda part: part.start < stretch.end, exact[at:])  # noqa: B023 - read at once
        cut = (replace(one, start=max(one.start, stretch.start), end=min(one.end, stretch.end)) for one in own)
        found += _in_stretch(stretch, [replace(one, lines=dict(one.lines)) for one in cut if one.length > 0])
    shown = _joined((part for part in found if part.length > 0), least=0.0)
    # At most so many parts as a bar shows, none too short to be seen; longer ones go as long as needed.
    least = (shown[-1].end - shown[0].start if shown else 0.0) / (4 * MOST_SPANS)
    shown = _joined(shown, least)
    while len(shown) > MOST_SPANS:
        least *= 2
        shown = _joined(shown, least)
    lines = (max(one.lines, key=one.lines.__getitem__, default=None) for one in shown)
    return tuple(
        PhaseSegment(one.phase, MS * (one.start - begin), MS * (one.end - begin), place(line))
        for one, line in zip(shown, lines, strict=True)
    )


def _exact(course: RunCourse) -> Iterator[_Part]:
    """Yield the calls that are told alone, in order, without overlaps: an inner one cuts the outer in two."""
    log, calls = course.log, list[tuple[float, float, Phase, int | None]]()  # begin and end in s, phase, number
    for span in log.spans:
        if phase := OF_CALL.get(course.kind(span.call)):
            calls.append((span.start, span.end, phase, span.call))
    calls += [(one.start, one.start + one.ms / MS, Phase.TRACING, one.call) for one in log.traces]
    calls += [(start, start + ms / MS, Phase.BOUNDARIES, None) for start, _, ms in first_steps(course)]
    edges = sorted({edge for start, end, *_ in calls for edge in (start, end)})
    under_way: list[tuple[float, float, Phase, int | None]] = []
    waiting = sorted(calls, key=lambda call: (call[0], -call[1]), reverse=True)
    for start, end in pairwise(edges):
        while waiting and waiting[-1][0] <= start:
            under_way.append(waiting.pop())
        under_way = [call for call in under_way if call[1] > start]
        if under_way:
            *_, phase, call = under_way[-1]
            known = log.calls.get(call) if call is not None else None
            yield _Part(phase, start, end, {known.at: (end - start) * MS} if known else {})


def _in_stretch(stretch: Stretch, exact: Sequence[_Part]) -> Iterator[_Part]:
    """Yield the parts of a stretch: the exact calls, and in the gaps between them what else its pieces are.

    A gap has parts as long as the phases' shares, in the order of Phase.
    """
    pieces = by_key((piece.phase, (piece.seen.at, piece.ms)) for piece in stretch.pieces)
    left = {phase: summed(own) for phase, own in pieces.items()}
    times = {phase: sum(lines.values()) for phase, lines in left.items()}
    for part in exact:
        part.lines = part.lines or {**left.get(part.phase, {})}
        times[part.phase] = times.get(part.phase, 0.0) - part.length * MS
    total = sum(ms for ms in times.values() if ms > 0)
    shares = {phase: ms / total for phase, ms in times.items() if total and ms > LEAST_SHARE * total}
    shares = shares or {max(times, key=lambda phase: times[phase], default=Phase.UNNAMED): 1.0}
    edges = [stretch.start, *(edge for part in exact for edge in (part.start, part.end))]
    gaps = zip(edges[::2], [*edges[1::2], stretch.end], strict=True)
    for number, (start, end) in enumerate(gaps):
        begin, rest = start, sum(shares.values())
        for phase in (phase for phase in Phase if phase in shares and end > start):
            until = begin + (end - begin) * shares[phase] / rest
            rest -= shares[phase]
            yield _Part(phase, begin, until if rest > 0 else end, dict(left.get(phase, {})))
            begin = until
        yield from exact[number : number + 1]


def _joined(parts: Iterable[_Part], least: float) -> list[_Part]:
    """Return parts with neighbours of one phase as one, and those shorter than so many s with the one before.

    The longer one's phase and lines stay.
    """
    kept: list[_Part] = []
    for part in parts:
        last = kept[-1] if kept else None
        if last is None or (last.phase != part.phase and min(part.length, last.length) >= least):
            kept.append(part)
            continue
        if last.phase == part.phase:
            for line, ms in part.lines.items():
                last.lines[line] = last.lines.get(line, 0.0) + ms
        elif part.length > last.length:
            last.phase, last.lines = part.phase, part.lines
        last.start, last.end = min(last.start, part.start), max(last.end, part.end)
    return kept
