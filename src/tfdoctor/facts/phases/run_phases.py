"""The phases of a run, and the lines of the user's in each: the only place that divides its wall time.

They are told in time order too, as stretches of one phase each, for the bar. Calls that the log tells one by one
have exact begins and ends; the rest of each bucket is divided as its pieces are, in the order of Phase.
"""

from dataclasses import dataclass
from itertools import takewhile

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.call_phases import OF_CALL
from tfdoctor.facts.phases.run_calls import traced_definitions
from tfdoctor.facts.phases.run_course import MS, RunCourse
from tfdoctor.facts.phases.run_pieces import (
    RunPiece,
    Stretch,
    alike,
    begin_and_end,
    first_steps,
    lines_that_train,
    stretches,
)
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import TENSORFLOW, RunLog, SeenStack
from tfdoctor.terms.humanize import counted, duration
from tfdoctor.terms.run_time import PhaseLine, PhaseSegment
from tfdoctor.terms.text import shorten

ENOUGH = 5  # Samples of a line from which on it is named: with 5, its share is uncertain by 45 %
MOST_LINES = 500  # Lines that are kept, the largest: nobody reads more of generated code, or of a very long run
HALF = 0.5
MOSTLY = 0.9  # Share of the calls of a line with one row of each array from which on it works on one item at a time
# Functions of TensorFlow that call its executor, or wait for a tensor.
EXECUTING = frozenset({"quick_execute", "numpy", "_numpy"})
ONCE = (Phase.START, Phase.IMPORTS, Phase.PROFILER, Phase.END)  # Phases that a longer run has no more of
# Phases that come once as far as they lie before the first step, evaluation or prediction.
FIRST = (Phase.PREPARING, Phase.CHILDREN, Phase.OWN, Phase.BUILDING)
# Time that the machine slept, or that its wall clock was set by, from which a note says so.
WORTH_SAYING_MS = 1000.0
COMMAND = 60  # Characters of a process's command beside the reason
MOST_SPANS = 400  # Stretches of the bar: it is at most 1,280 pixels wide, and one of 3 can just be pointed at
LEAST_SHARE = 0.1  # Share of a bucket's time from which a phase in it gets a stretch of its own


class RunLine(PhaseLine, kw_only=True):
    """Time of a phase at a line of the user's, in ms of the run.

    ``caller`` is the user's line that called the function of ``at``, ``runs`` the innermost function of a library
    ("pandas.DataFrame.iterrows"). ``repeats`` says whether a loop holds the line: one of its function, or of the
    line that calls it, or a library that calls the user's function again and again; None is unknown. ``loops`` is
    how many loops of the user's functions hold the line, without those around a call that trains. ``exact`` says
    that calls at the line were timed, so that few samples do not make it uncertain. ``executes_ms`` is the part of
    ``ms`` in which TensorFlow executed operations, as samples show it, or their result was waited for. ``around``
    are the user's lines that lead to the function of ``at``, the innermost first. Of ``given`` calls that samples
    show, in different steps and with arguments that could be compared, ``again`` had those of an earlier one.
    ``single`` says that nearly all calls that samples show get one row of each array. ``callback`` is the method of
    a Keras callback that it works for, ``work`` what it mostly does. ``in_step`` says that it lies in the function
    that the loop calls for a training step, ``looped`` in the innermost loop around that which trains; ``long_ms``
    are in steps of over 1.5 times the usual one, after that time.
    """

    phase: Phase
    function: str = ""  # the user's function that holds the line; "<module>" is the script itself
    caller: Location | None = None
    runs: str = ""
    repeats: bool | None = None
    loops: int = 0
    exact: bool = False
    executes_ms: float = 0.0
    around: tuple[Location, ...] = ()
    given: int = 0
    again: int = 0
    single: bool = False
    callback: str = ""
    work: RunWork = RunWork.OTHER
    in_step: bool = False
    looped: bool = False
    long_ms: float = 0.0

    @property
    def own_ms(self) -> float:
        """The time in which it does not wait for operations of TensorFlow."""
        return self.ms - self.executes_ms

    @property
    def sure(self) -> bool:
        """Whether there is enough to name the line."""
        return self.exact or self.samples >= ENOUGH


def run_lines(pieces: Iterable[RunPiece], place: Places, log: RunLog) -> tuple[RunLine, ...]:
    """Return the lines of all phases, the largest first."""
    held = by_key(((piece.phase, _same(piece.seen)), piece) for piece in pieces)
    counted, lines = {what: _by_stack(log, what) for what in ("given", "single")}, []
    for own in held.values():
        phase, line = own[0].phase, own[0].seen
        ms, runs = sum(piece.ms for piece in own), summed((piece.seen.runs or "", piece.ms) for piece in own)
        repeats = [piece.seen.repeats for piece in own if piece.seen.repeats is not None]
        around = next(iter(summed((piece.seen.around, piece.ms) for piece in own)))
        # A piece without a sample has no stack of its own.
        seen = {piece.seen.id for piece in own if piece.samples}
        (calls, again), (with_rows, one_row) = (
            [sum(counts) for counts in zip(*(of.get(number, (0, 0)) for number in seen), (0, 0), strict=True)]
            for of in counted.values()
        )
        lines.append(
            RunLine(
                phase=phase, at=place(line.at), ms=ms, samples=round(sum(piece.samples for piece in own)),
                function=line.function, caller=place(line.caller), calls=line.calls or "",
                runs=next(iter(runs)),
                repeats=any(repeats) if repeats else None, loops=max(piece.seen.loops for piece in own),
                executes_ms=sum(ms for name, ms in runs.items() if name.rpartition(".")[2] in EXECUTING),
                exact=sum(piece.ms for piece in own if piece.exact) > HALF * ms,
                around=tuple(at for one in around if (at := place(one))), given=calls, again=again,
                single=bool(one_row) and one_row >= MOSTLY * with_rows,
                callback=next(iter(summed((piece.seen.callback, piece.ms) for piece in own))),
                work=next(iter(summed((piece.seen.work, piece.ms) for piece in own))),
                in_step=any(piece.seen.step for piece in own), looped=any(piece.seen.looped for piece in own),
                long_ms=sum(piece.ms for piece in own if piece.seen.long),
            )
        )  # fmt: skip
    return tuple(sorted(lines, key=lambda line: -line.ms)[:MOST_LINES])


def _same(seen: SeenStack) -> tuple[object, ...]:
    """Return what the stacks of one line have in common."""
    return seen.at, seen.caller, seen.calls or "", seen.function


def _by_stack(log: RunLog, what: str) -> dict[int, tuple[int, int]]:
    """Return the calls whose arguments are known, and those of them that are so, by the number of the stack."""
    found: dict[int, tuple[int, int]] = {}
    for number, (calls, so) in (row for bucket in log.buckets for row in getattr(bucket, what).items()):
        if number.isdecimal():
            before = found.get(int(number), (0, 0))
            found[int(number)] = before[0] + calls, before[1] + so
    return found


class RunPhases(Record, kw_only=True):
    """Every ms of wall time from the start of the process to its end, in exactly one phase.

    ``times`` sums to ``total_ms``. ``once_ms`` is the time of what does not come again in a longer run: start,
    imports, first preparing, building and first tracing of each function, end. ``whole`` is False where only a
    traced window is known; ``missing`` says why, as a clause. ``lines`` are largest first.
    """

    total_ms: float
    times: Mapping[Phase, float]
    lines: tuple[RunLine, ...] = ()
    spans: tuple[PhaseSegment, ...] = ()
    once_ms: float = 0.0
    whole: bool = True
    missing: str = ""
    finished: bool = True  # False: killed, or still running
    ended_early: bool = False  # after its traced steps, as the user asked
    unseen: bool = False  # what trains may be where the recorder did not look
    others: tuple[str, ...] = ()  # other processes of the run, which this account does not contain
    notes: tuple[str, ...] = ()  # sentences: suspended for 20 s, clocks that jumped
    alike: float | None = None  # share of the steps' time that is divided as near the traced ones (see `alike`)

    @classmethod
    def measure(cls, recording: Recording, steps: Steps | None) -> Self:
        """Divide the time of the log; without one, that of the traced steps alone.

        Raises:
            Unavailable: neither the run nor any step of it was recorded.
        """
        log, manifest, place = recording.run, recording.manifest, Places.of(recording)
        if log is None:
            if steps is None:
                raise Unavailable("the run as a whole was not recorded")
            stepping = sum(step.total_ms * step.calls for step in steps.steps)
            window = max(s.end_ps for s in steps.steps) - min(s.start_ps for s in steps.steps)
            total, missing = max(stepping, window / PS_PER_MS), "the rest of the run was not recorded: "
            if manifest is not None and manifest.times is not None:
                missing += "its log is missing"
            else:
                missing += f"{'this recording' if manifest else 'a trace'} contains the traced window only"
            times = {Phase.STEPS: stepping, Phase.UNNAMED: total - stepping}
            times = {phase: ms for phase, ms in times.items() if ms > 0}
            return cls(total_ms=total, times=times, whole=False, missing=missing)
        course = RunCourse.of(log)
        parts = stretches(course, *begin_and_end(log, manifest))
        times = _times(parts)
        first = course.first_work if not course.trains and course.first_work is not None else course.first_step
        early = _times(part for part in parts if part.number is not None and part.number <= first)
        once = sum(times.get(phase, 0.0) for phase in ONCE) + sum(early.get(phase, 0.0) for phase in FIRST)
        known = manifest and TENSORFLOW in manifest.versions and log.other_framework is None and log.end is not None
        tracing_ms = sum(one.first_ms for one in traced_definitions(course, Places()))  # of each the first time
        elsewhere = bool(manifest and manifest.background) or Phase.CHILDREN in times
        others = [one for one in (manifest.processes if manifest else ()) if one.pid not in {None, log.process.pid}]
        named = [(shorten(" ".join(one.argv), COMMAND) or f"process {one.pid}", one.why) for one in others]
        return cls(
            total_ms=sum(times.values()), times=times, spans=phase_spans(parts, course, place),
            lines=run_lines((piece for part in parts for piece in part.pieces), place, log),
            once_ms=once + min(times.get(Phase.TRACING, 0.0), tracing_ms),
            finished=log.end is not None, ended_early=bool(manifest and manifest.ended_early),
            # Training goes unseen without TensorFlow, in other processes, or later.
            unseen=manifest is not None and Phase.STEPS not in times and (not known or elsewhere),
            others=tuple(f"{name} ({why})" if why else name for name, why in named),
            notes=tuple(_notes(manifest, log, place)), alike=alike(parts, log, lines_that_train(recording)),
        )  # fmt: skip

    @property
    def until(self) -> str:
        """When a run that was ended as asked had ended, as the end of a clause; "" of any other."""
        return " before it was ended, after its traced steps" if self.ended_early else ""

    def of(self, *phases: Phase) -> float:
        """Return the time of phases, in ms."""
        return sum(self.times.get(phase, 0.0) for phase in phases)

    def share(self, *phases: Phase) -> float:
        """Return the share of phases in the run, 0 to 1."""
        return self.of(*phases) / self.total_ms if self.total_ms else 0.0

    @property
    def recurring_ms(self) -> float:
        """The time that a longer run has more of: what is judged where a run is short."""
        return self.total_ms - self.once_ms

    def at(self, *phases: Phase) -> tuple[RunLine, ...]:
        """Return the lines of phases, largest first."""
        return tuple(line for line in self.lines if line.phase in phases)


def _times(parts: Iterable[Stretch]) -> dict[Phase, float]:
    times = summed((piece.phase, piece.ms) for part in parts for piece in part.pieces)
    return {phase: times[phase] for phase in Phase if times.get(phase, 0.0) > 0}


def _notes(manifest: Manifest | None, log: RunLog, place: Places) -> Iterator[str]:
    times = manifest.times if manifest else None
    slept = times.suspended_ns / 1e6 if times else 0.0
    jumped = abs(times.clock_jump_ns / 1e6) if times else 0.0
    if slept >= WORTH_SAYING_MS:
        yield f"The machine slept for {milliseconds(slept)} meanwhile, which the account leaves out."
    if jumped >= WORTH_SAYING_MS:
        set_by = f"The wall clock was set by {milliseconds(jumped)} meanwhile"
        yield f"{set_by}; the account uses a clock that cannot be set."
    for cost in manifest.costs if manifest else ():
        if cost.too_long and cost.run_s:
            seconds = cost.start_s + cost.stop_s
            took = f"{duration(1e3 * seconds)} ({percent(seconds / cost.run_s)} of the run until then)"
            shorter = cost.steps > 1 and cost.stop_s > cost.start_s
            fewer = f"--steps {cost.steps // 2} traces less, " if shorter else ""
            yield f"To start and to stop the profiler took {took}: {fewer}--no-trace traces nothing."
    if log.dropped:
        yield f"{counted(log.dropped, 'call')} of the run were counted, but not recorded one by one."
    if names := ", ".join(place.shown(one.path) for one in log.unread):
        yield f"The source of {names} is too long to be read, so findings may name fewer of its lines."


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
