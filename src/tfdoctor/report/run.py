"""The account of the run as renderings show it: its words, its bar, the phases with their lines, and remarks."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import ClassVar

from tfdoctor.diagnosis import ImportedPackage, LongStepTime, PhaseLine, PhaseRow, PhaseSegment, RunAccount
from tfdoctor.report import words
from tfdoctor.report.words import is_known, joined
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, duration, location, quantity, share, with_noun
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import nbytes

# Of each phase: what it is in a sentence, "30 s (73 %) are <...>"; its colour, as those of the parts of a step
# (training steps as computing, preparing data as waiting for input); its cell in a bar that is read without them.
PHASES = {
    Phase.START: ("the start of Python", "#7f8791", "▖"),
    Phase.IMPORTS: ("imports", "#5b7a99", "▄"),
    Phase.PREPARING: ("preparation of data", "#d55e00", "▓"),
    Phase.CHILDREN: ("waiting for child processes", "#8c8440", "▘"),
    Phase.OWN: ("the script's own work", "#4f86a8", "▙"),
    Phase.BUILDING: ("building of the model", "#b8609a", "▞"),
    Phase.TRACING: ("tracing and compiling", "#8a63c9", "▒"),
    Phase.STEPS: ("training steps", "#0f76b5", "█"),
    Phase.BOUNDARIES: ("work at epoch boundaries", "#b07d0e", "░"),
    Phase.EVALUATION: ("evaluation", "#1f958c", "▀"),
    Phase.PREDICTION: ("prediction", "#5f8f1d", "▚"),
    Phase.SAVING: ("saving", "#a4663f", "▌"),
    Phase.PROFILER: ("tfdoctor's profiler", "#cc4455", "▐"),
    Phase.END: ("the end of the run", "#7b8a7b", "▗"),
    Phase.UNNAMED: ("unnamed", "#69717c", "?"),
}
PHASE_NOUNS, PHASE_COLOURS, GLYPHS = (
    {phase: of_phase[at] for phase, of_phase in PHASES.items()} for at in range(3)
)
# In the name of a function that writes summaries.
SUMMARIES = re.compile(r"(^|\.)(summary(_ops_v2)?|TensorBoard)\.")


def noun(row: PhaseRow) -> str:
    """Return what a phase was in a sentence: what was saved is told by what its lines call."""
    if row.phase is not Phase.SAVING or not row.lines:
        return PHASE_NOUNS[row.phase]
    summaries = {bool(SUMMARIES.search(line.calls)) for line in row.lines}
    if summaries == {True}:
        return "saving of summaries"
    return f"saving of models{', checkpoints and summaries' if True in summaries else ' and checkpoints'}"


def times(run: RunAccount) -> dict[Phase, float]:
    """Return the phases that take time, in ms and in their order."""
    return {row.phase: row.ms for row in run.rows if 0 < row.ms < math.inf}


def amount(run: RunAccount, time_ms: float) -> str:
    """Return a time with its share of the run: "72 s (55 %)"."""
    return f"{duration(time_ms)} ({share(time_ms / run.total_ms)})" if run.total_ms else duration(time_ms)


THINNEST = 0.002  # Share of the bar below which a stretch would be invisible
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


def pieces(run: RunAccount) -> Iterator[BarPiece]:
    """Yield the stretches of the run as pieces of its bar; cells of the bar where there are too many stretches.

    Cells of one phase beside each other are one piece, with their line where it is the same.
    """
    shown = stretches(run)
    if len(shown) > MOST_PIECES:
        alike = [list(same) for _, same in groupby(cells(run, MOST_PIECES), lambda one: one.phase)]
        shown = [
            replace(same[0], end_ms=same[-1].end_ms, at=same[0].at if len({one.at for one in same}) == 1 else None)
            for same in alike
        ]
    for one in shown:
        width = round(max((one.end_ms - one.start_ms) / run.total_ms, THINNEST), 5)
        left = round(min(one.start_ms / run.total_ms, 1 - width), 5)
        start, end = duration(one.start_ms) if one.start_ms > 0 else "0", duration(one.end_ms)
        when = f"at {end}" if start == end else f"from {start} to {end}"
        words = joined(f"{one.phase}: {duration(one.end_ms - one.start_ms)}", when, location(one.at))
        name = str(one.phase) if width >= NAMED and one.phase is not Phase.UNNAMED else ""
        yield BarPiece(one.phase.name.lower(), left, width, words, name)


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
    size = run.total_ms / number
    longest = [(0.0, PhaseSegment(phase=Phase.UNNAMED, start_ms=0, end_ms=0))] * number
    for one in stretches(run):
        for cell in range(int(one.start_ms / size), min(number, int(one.end_ms / size) + 1)):
            time_ms = min(one.end_ms, (cell + 1) * size) - max(one.start_ms, cell * size)
            longest[cell] = max(longest[cell], (time_ms, one), key=itemgetter(0))
    for cell, (_, one) in enumerate(longest):
        yield replace(one, start_ms=cell * size, end_ms=(cell + 1) * size)


def axis(total: float, steps: Iterable[float], label: Callable[[float], str]) -> Iterator[tuple[float, str]]:
    """Yield the labels of an axis at multiples of a round step, each at a percentage of the width."""
    step = next((step for step in steps if total / step < MOST_TICKS + 1), total)
    number = 0
    while total > 0 and number * step <= LAST_TICK * total:
        yield round(100 * number * step / total, 2), label(number * step) if number else "0"
        number += 1


NO_LINE = "no line of the program"  # Where time passed in which no line of the user's ran
LITTLE = 0.01  # Share below which a bar of a window shows nothing but steps, and a phase needs no row of its own
UNKNOWN = 0.01  # Share of the time of long steps below which its unknown part is rounding
# Share of the run, and ms, from which its end is explained: TensorFlow needs some tenths of a second to end.
LONG_END, LONG_END_MS = 0.05, 1000.0
OTHERS = 8  # Names of other processes in a sentence
APART = 0.1  # Share of the time of all steps from which it is said what of it other phases have
MOST = 0.5  # Share of that from which a phase is named

# Round distances in s between the labels of the bar's axis.
STEPS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400, 172800, 432000),
)


class RunSection(Record, kw_only=True):
    """The account of the run with its phases that take time, of each the lines that do, the largest first."""

    AT_ONCE: ClassVar[int] = 3  # Lines of a phase that are shown at once; the rest is folded

    account: RunAccount
    phases: tuple[PhaseRow, ...]
    long_lines: tuple[PhaseLine, ...]
    title: str  # "The run in time order, 131 s"
    ticks: tuple[tuple[float, str], ...]  # the labels of its axis
    step_title: str  # what part of the run the bar of the step is about
    short: str  # the phases that are too short for rows of their own, with their times; "" of none
    notes: tuple[str, ...]
    long: str  # how many steps are long; "" where none is
    workers: str  # what worker processes did; "" without
    worker_lines: tuple[PhaseLine, ...]

    def share(self, of: PhaseRow | PhaseLine) -> str:
        """Return the share of a phase or a line."""
        return share(of.ms / self.account.total_ms)

    def is_short(self, row: PhaseRow) -> bool:
        """Return whether a phase takes too little of the run for a row of its own on the page."""
        return row.ms < LITTLE * self.account.total_ms


ALL_BELOW = "all that it calls"


def where(line: PhaseLine | ImportedPackage) -> str:
    """Return where time of the run or of a step passed."""
    return location(line.at) or NO_LINE


def section(run: RunAccount | None) -> RunSection | None:
    """Return the account as text; None without one, and of a window that has steps alone."""
    if run is None or not 0 < run.total_ms < math.inf or not times(run):
        return None
    steps, whole = times(run).get(Phase.STEPS), run.total_ms
    if not run.whole and whole - run.of(Phase.STEPS) < LITTLE * whole:
        return None
    what = "run" if run.whole else "traced window"
    taken_ms = _from_each_to_the_next(run)
    between = f"; {duration(taken_ms)} with the phases between them" if taken_ms else ""
    all_steps = f" (all steps: {duration(steps)}, {share(steps / whole)} of the {what}{between})" if steps else ""
    taking = [replace(row, lines=_lines(row.lines)) for row in run.rows if row.phase in times(run)]
    little = ", ".join(f"{row.phase} {duration(row.ms)}" for row in taking if row.ms < LITTLE * whole)
    return RunSection(
        account=run,
        phases=tuple(taking),
        long_lines=_lines(run.long_steps.lines) if run.long_steps else (),
        title=f"The {what} {'in time order' if run.segments else 'by phase'}, {duration(run.total_ms)}",
        ticks=tuple(axis(run.total_ms / 1000, STEPS_S, lambda seconds: duration(1000 * seconds))),
        step_title=f"One training step{all_steps}",
        short=f"Less than {share(LITTLE)} of the {what} each: {little}." if little else "",
        notes=tuple(_notes(run)),
        long=" ".join(_long(run.long_steps)) if run.long_steps else "",
        workers=words.workers(run.workers),
        worker_lines=words.worker_lines(run.workers),
    )


def _lines(lines: Sequence[PhaseLine]) -> tuple[PhaseLine, ...]:
    named = ((line, ALL_BELOW if line.leads else text.name(line.calls, 80)) for line in lines)
    taking = [replace(line, calls=calls) for line, calls in named if 0 < line.ms < math.inf]
    return tuple(sorted(taking, key=lambda line: -line.ms))


def _notes(run: RunAccount) -> Iterator[str]:
    yield from map(text.sentence, run.notes)
    if run.imports:
        packages = (f"{text.name(one.package)} {duration(one.ms)} at {where(one)}" for one in run.imports)
        imports_ms = run.of(Phase.IMPORTS)
        of_run = f"{duration(imports_ms)} ({share(imports_ms / run.total_ms)} of the run)"
        yield f"Imports: {of_run}: {', '.join(packages)}."
    if unneeded := "; ".join(f"{text.name(o.package)}, as {text.prose(o.late)}" for o in run.imports if o.late):
        yield f"Not needed at the start, unless another module imports it too: {unneeded}."
    if taken_ms := _from_each_to_the_next(run):
        yield _between_steps(run, taken_ms)
    if run.ended_early and run.planned_epochs and run.epochs:
        yield f"The run was ended in epoch {run.epochs:,} of {run.planned_epochs:,}."
    elif run.planned_epochs and run.epochs < run.planned_epochs:
        yield f"{run.epochs:,} of {run.planned_epochs:,} planned epochs began."
    at_end = (line for row in run.rows if row.phase is Phase.END for line in row.lines)
    silent_ms = run.of(Phase.END) - sum(line.ms for line in at_end if line.at and is_known(line.ms))
    if silent_ms > max(LONG_END * run.total_ms, LONG_END_MS):
        yield (
            f"{duration(silent_ms)} pass after the last line of the program: exit handlers run, threads are "
            "waited for, memory is freed. Which of it takes the time is not recorded."
        )
    if is_known(run.peak_bytes):
        yield f"Most resident memory: {quantity(nbytes(run.peak_bytes))}."
    if run.others:
        named = ", ".join(text.name(other) for other in run.others[:OTHERS])
        more = f" and {len(run.others) - OTHERS:,} more" if len(run.others) > OTHERS else ""
        yield f"Other processes of the run, whose time the account does not contain: {named}{more}."


def _from_each_to_the_next(run: RunAccount) -> float:
    """Return what all steps take with the phases between them, in ms; 0 where the phase of steps has nearly all."""
    taken_ms = run.steps * (run.step_mean_ms or 0.0)
    apart = is_known(taken_ms) and taken_ms - run.of(Phase.STEPS) > APART * taken_ms
    return taken_ms if run.whole and run.of(Phase.STEPS) and apart else 0.0


def _between_steps(run: RunAccount, taken_ms: float) -> str:
    """Return which part of that the phase of steps has, and the phase that has most of the rest."""
    trains = [segment for segment in run.segments if segment.phase is Phase.STEPS]
    inner = [one for one in run.segments if trains and trains[0].start_ms < one.start_ms < trains[-1].start_ms]
    others = [row for row in run.rows if row.phase is not Phase.STEPS]
    spent = {row.phase: sum(one.end_ms - one.start_ms for one in inner if one.phase is row.phase) for row in others}
    parts = [(spent[row.phase], noun(row)) for row in others]
    (most_ms, what), steps_ms = max(parts, default=(0.0, "")), run.of(Phase.STEPS)
    mostly = f", mostly {what}" if most_ms >= MOST * (taken_ms - steps_ms) else ""
    return (
        f"From each to the next, {counted(run.steps, 'training step')} take {duration(taken_ms)}; "
        f"{duration(steps_ms)} of that are the phase of training steps, and the rest is in other phases{mostly}."
    )


def _long(long: LongStepTime) -> Iterator[str]:
    """Yield how many steps are long, which they are, and how much of their time has no cause."""
    yield f"{long_steps(long).capitalize()} {duration(long.beyond_ms)} beyond the usual time."
    of = "of an epoch or of a pass over the data"
    if long.first and long.count == 1:
        yield f"It is the first {of}."
    elif long.first and long.first == long.count:
        yield f"Each of them is the first {of}."
    elif long.first:
        are = "is the first" if long.first == 1 else "are the first ones"
        yield f"{long.first:,} of them {are} {of}: {duration(long.first_beyond_ms)} of that."
    if long.every:
        yield f"One comes every {long.every:,} steps."
    if is_known(long.unknown_ms) and long.unknown_ms > UNKNOWN * long.beyond_ms:
        meanwhile = f"; other programs used {with_noun(round(long.other_cores, 1), 'core')} meanwhile"
        yield text.sentence(f"{cause_unknown(long)}{meanwhile if long.other_cores else ''}")


def cause_unknown(long: LongStepTime) -> str:
    """Return how much of what long steps add has no known cause: "the cause of 8 s is unknown"."""
    time, beyond = duration(long.unknown_ms), duration(long.beyond_ms)
    return f"the cause{'' if time == beyond else f' of {time}'} is unknown"


def long_steps(long: LongStepTime) -> str:
    """Return how many steps are long, with the verb: "three long steps take"."""
    return f"{counted(long.count, 'long step')} {'takes' if long.count == 1 else 'take'}"
