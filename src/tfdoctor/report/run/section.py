"""The account of the run as every rendering shows it: the bar, the phases with their lines, and remarks."""

from collections.abc import Iterator, Sequence

from tfdoctor.diagnosis import LongStepTime, PhaseLine, PhaseRow, RunAccount
from tfdoctor.report.run import bar, verdict
from tfdoctor.report.run.words import noun, times, whole_ms
from tfdoctor.report.words import is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, duration, location, quantity, share
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.units import nbytes

LINES = 3  # Lines of a phase that are shown at once; the rest is folded
LITTLE = 0.01  # Share below which a bar of a window shows nothing but steps, and a phase needs no row of its own
UNKNOWN = 0.01  # Share of the time of long steps below which its unknown part is rounding
# Share of the run, and ms, from which its end is explained: TensorFlow needs some tenths of a second to end.
LONG_END, LONG_END_MS = 0.05, 1000.0
OTHERS = 8  # Names of other processes in a sentence


class RunLineText(Record):
    """A line of the user's with its time, and what it calls; ``part`` is its share of the run, 0 to 1.

    ``placed`` is False for time in which no line of theirs ran.
    """

    where: str
    time: str
    share: str
    calls: str
    part: float
    placed: bool


class RunPhaseText(Record):
    """A phase with its time and lines."""

    phase: Phase
    label: str
    time: str
    share: str
    lines: tuple[RunLineText, ...]
    is_short: bool  # too little of the run for a row of its own on the page

    @property
    def key(self) -> str:
        """Its name in style sheets."""
        return self.phase.name.lower()

    @property
    def first(self) -> tuple[RunLineText, ...]:
        """The lines that are shown at once."""
        return self.lines[:LINES]

    @property
    def rest(self) -> tuple[RunLineText, ...]:
        """The other lines."""
        return self.lines[LINES:]


class RunSection(Record, kw_only=True):
    """The account of the run, as text and as a bar; ``account`` is what it was made of."""

    account: RunAccount
    title: str  # "The run in time order, 131 s"
    words: str  # the bar, for those who do not see it
    pieces: tuple[bar.RunBarPiece, ...]
    ticks: tuple[bar.RunTick, ...]
    phases: tuple[RunPhaseText, ...]
    notes: tuple[str, ...]
    step_title: str  # what part of the run the bar of the step is about
    long: str  # how many steps are long; "" where none is
    long_lines: tuple[RunLineText, ...]

    @property
    def short(self) -> str:
        """The phases that are too short for rows of their own, with their times, as a sentence; "" of none."""
        found = [f"{phase.label} {phase.time}" for phase in self.phases if phase.is_short]
        what = "run" if self.account.whole else "traced window"
        return f"Less than {share(LITTLE)} of the {what} each: {', '.join(found)}." if found else ""


def section(run: RunAccount | None) -> RunSection | None:
    """Return the account as text; None without one, and of a window that has steps alone."""
    if run is None or not is_known(run.total_ms) or not run.total_ms > 0 or not times(run):
        return None
    steps, whole = times(run).get(Phase.STEPS), whole_ms(run)
    if not run.whole and whole - run.of(Phase.STEPS) < LITTLE * whole:
        return None
    phases = tuple(_phase(row, whole) for row in run.rows if row.phase in times(run))
    what = "run" if run.whole else "traced window"
    taken_ms = _from_each_to_the_next(run)
    between = f"; {duration(taken_ms)} with the phases between them" if taken_ms else ""
    all_steps = f" (all steps: {duration(steps)}, {share(steps / whole)} of the {what}{between})" if steps else ""
    return RunSection(
        account=run,
        title=f"The {what} {'in time order' if run.segments else 'by phase'}, {duration(run.total_ms)}",
        words=f"The {what}: {', '.join(f'{p.label} {p.time}' for p in phases)}.",
        pieces=bar.pieces(run),
        ticks=tuple(bar.ticks(run)),
        phases=phases,
        step_title=f"One training step{all_steps}",
        notes=tuple(_notes(run)),
        long=" ".join(_long(run.long_steps)) if run.long_steps else "",
        long_lines=_lines(run.long_steps.lines, whole) if run.long_steps else (),
    )


def _phase(row: PhaseRow, whole: float) -> RunPhaseText:
    label, part = str(row.phase), share(row.ms / whole)
    lines, short = _lines(row.lines, whole), row.ms < LITTLE * whole
    return RunPhaseText(row.phase, label, duration(row.ms), part, lines, short)


def _lines(lines: Sequence[PhaseLine], whole: float) -> tuple[RunLineText, ...]:
    """Return lines that take time, the largest first; their shares are of the whole time, in ms."""
    taking = [line for line in lines if is_known(line.ms) and line.ms > 0]
    return tuple(
        RunLineText(
            where=location(line.at) or "no line of the program",
            time=duration(line.ms),
            share=share(line.ms / whole),
            calls=text.name(line.calls, 80),
            part=line.ms / whole,
            placed=line.at is not None,
        )
        for line in sorted(taking, key=lambda line: -line.ms)
    )


def _notes(run: RunAccount) -> Iterator[str]:
    """Yield what else there is to know of the account."""
    yield from map(text.sentence, run.notes)
    if taken_ms := _from_each_to_the_next(run):
        yield _between_steps(run, taken_ms)
    if run.ended_early and run.planned_epochs and run.epochs:
        yield f"The run was ended in epoch {run.epochs:,} of {run.planned_epochs:,}."
    elif run.planned_epochs and run.epochs < run.planned_epochs:
        yield f"{run.epochs:,} of {counted(run.planned_epochs, 'planned epoch')} began."
    if silent_ms := _silent_end(run):
        yield (
            f"{duration(silent_ms)} pass after the last line of the program: exit handlers run, threads are "
            "waited for, memory is freed. Which of it takes the time is not recorded."
        )
    if run.peak_bytes is not None and is_known(run.peak_bytes):
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
    parts = [
        (sum(one.end_ms - one.start_ms for one in inner if one.phase is row.phase), noun(row))
        for row in run.rows
        if row.phase is not Phase.STEPS
    ]
    most_ms, what = max(parts, default=(0.0, ""))
    mostly = f", mostly {what}" if most_ms >= MOST * (taken_ms - run.of(Phase.STEPS)) else ""
    return (
        f"From each to the next, {counted(run.steps, 'training step')} take {duration(taken_ms)}; "
        f"{duration(run.of(Phase.STEPS))} of that are the phase of training steps, and the rest is in other "
        f"phases{mostly}."
    )


APART = 0.1  # Share of the time of all steps from which it is said what of it other phases have
MOST = 0.5  # Share of that from which a phase is named


def _silent_end(run: RunAccount) -> float:
    """Return the time at the end in which no line of the program is seen, in ms; 0 where it is little."""
    lines = (line for row in run.rows if row.phase is Phase.END for line in row.lines)
    silent_ms = run.of(Phase.END) - sum(line.ms for line in lines if line.at and is_known(line.ms))
    return silent_ms if silent_ms > max(LONG_END * whole_ms(run), LONG_END_MS) else 0.0


def _first(long: LongStepTime) -> str:
    """Return how many long steps begin an epoch or a pass over the data, and how long these take."""
    of = "of an epoch or of a pass over the data"
    beyond = f": {duration(long.first_beyond_ms)} of that"
    if long.count == 1:
        return f"It is the first {of}."
    if long.first == long.count:
        return f"Each of them is the first {of}."
    are = "is the first" if long.first == 1 else "are the first ones"
    return f"{long.first:,} of them {are} {of}{beyond}."


def _long(long: LongStepTime) -> Iterator[str]:
    """Yield how many steps are long, which they are, and how much of their time has no cause."""
    start = verdict.long_steps(long).capitalize()
    yield f"{start} {duration(long.beyond_ms)} beyond the usual time."
    if long.first:
        yield _first(long)
    if long.every:
        yield f"One comes every {long.every:,} steps."
    if is_known(long.unknown_ms) and long.unknown_ms > UNKNOWN * long.beyond_ms:
        unknown, beyond = map(duration, (long.unknown_ms, long.beyond_ms))
        of = "" if unknown == beyond else f" of {unknown}"
        yield f"The cause{of} is unknown{verdict.disturbed(long)}."
