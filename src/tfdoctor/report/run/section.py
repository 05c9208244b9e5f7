"""The account of the run as every rendering shows it: the bar, the phases with their lines, and remarks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report.run import bar, verdict
from tfdoctor.report.run.words import noun, times, whole_ms
from tfdoctor.report.words import is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, duration, location, number, quantity, share
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.record import Record
from tfdoctor.terms.run_time import LongStepTime, PhaseLine
from tfdoctor.terms.units import nbytes

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
    whole_ms: float  # the time that shares are of
    phases: tuple[PhaseRow, ...]
    long_lines: tuple[PhaseLine, ...]
    title: str  # "The run in time order, 131 s"
    words: str  # the bar, for those who do not see it
    pieces: tuple[bar.BarPiece, ...]
    ticks: tuple[tuple[float, str], ...]  # the labels of its axis
    step_title: str  # what part of the run the bar of the step is about
    short: str  # the phases that are too short for rows of their own, with their times; "" of none
    notes: tuple[str, ...]
    long: str  # how many steps are long; "" where none is

    def share(self, of: PhaseRow | PhaseLine) -> str:
        """Return the share of a phase or a line."""
        return share(of.ms / self.whole_ms)

    def is_short(self, row: PhaseRow) -> bool:
        """Return whether a phase takes too little of the run for a row of its own on the page."""
        return row.ms < LITTLE * self.whole_ms


def where(line: PhaseLine) -> str:
    """Return where time of the run or of a step passed."""
    return location(line.at) or NO_LINE


def section(run: RunAccount | None) -> RunSection | None:
    """Return the account as text; None without one, and of a window that has steps alone."""
    if run is None or not is_known(run.total_ms) or not run.total_ms > 0 or not times(run):
        return None
    steps, whole = times(run).get(Phase.STEPS), whole_ms(run)
    if not run.whole and whole - run.of(Phase.STEPS) < LITTLE * whole:
        return None
    what = "run" if run.whole else "traced window"
    taken_ms = _from_each_to_the_next(run)
    between = f"; {duration(taken_ms)} with the phases between them" if taken_ms else ""
    all_steps = f" (all steps: {duration(steps)}, {share(steps / whole)} of the {what}{between})" if steps else ""
    taking = [replace(row, lines=_lines(row.lines)) for row in run.rows if row.phase in times(run)]
    told = [f"{row.phase} {duration(row.ms)}" for row in taking]
    little = ", ".join(words for row, words in zip(taking, told, strict=True) if row.ms < LITTLE * whole)
    return RunSection(
        account=run,
        whole_ms=whole,
        phases=tuple(taking),
        long_lines=_lines(run.long_steps.lines) if run.long_steps else (),
        title=f"The {what} {'in time order' if run.segments else 'by phase'}, {duration(run.total_ms)}",
        words=f"The {what}: {', '.join(told)}.",
        pieces=bar.pieces(run),
        ticks=tuple(bar.axis(run.total_ms / 1000, STEPS_S, lambda seconds: duration(1000 * seconds))),
        step_title=f"One training step{all_steps}",
        short=f"Less than {share(LITTLE)} of the {what} each: {little}." if little else "",
        notes=tuple(_notes(run)),
        long=" ".join(_long(run.long_steps)) if run.long_steps else "",
    )


def _lines(lines: Sequence[PhaseLine]) -> tuple[PhaseLine, ...]:
    taking = [replace(line, calls=text.name(line.calls, 80)) for line in lines if is_known(line.ms) and line.ms > 0]
    return tuple(sorted(taking, key=lambda line: -line.ms))


def _notes(run: RunAccount) -> Iterator[str]:
    """Yield what else there is to know of the account."""
    yield from map(text.sentence, run.notes)
    if taken_ms := _from_each_to_the_next(run):
        yield _between_steps(run, taken_ms)
    if run.ended_early and run.planned_epochs and run.epochs:
        yield f"The run was ended in epoch {run.epochs:,} of {run.planned_epochs:,}."
    elif run.planned_epochs and run.epochs < run.planned_epochs:
        yield f"{run.epochs:,} of {counted(run.planned_epochs, 'planned epoch')} began."
    at_end = (line for row in run.rows if row.phase is Phase.END for line in row.lines)
    silent_ms = run.of(Phase.END) - sum(line.ms for line in at_end if line.at and is_known(line.ms))
    if silent_ms > max(LONG_END * whole_ms(run), LONG_END_MS):
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


def _long(long: LongStepTime) -> Iterator[str]:
    """Yield how many steps are long, which they are, and how much of their time has no cause."""
    yield f"{verdict.long_steps(long).capitalize()} {duration(long.beyond_ms)} beyond the usual time."
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
        meanwhile = f"; other programs used {number(round(long.other_cores, 1))} cores meanwhile"
        yield text.sentence(f"{verdict.cause_unknown(long)}{meanwhile if long.other_cores else ''}")
