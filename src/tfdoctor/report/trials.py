"""What `tfdoctor try` measured, as the page shows it: promised beside measured, and whether it trains the same."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfdoctor import text
from tfdoctor.diagnosis import (
    BROKEN,
    Diagnosis,
    Difference,
    Measured,
    TrainingMatch,
    TrainingState,
    Trial,
    Trials,
)
from tfdoctor.humanize import counted, factor, milliseconds, share
from tfdoctor.report.sentences import saves
from tfdoctor.report.tables import Grid

BUSY = 0.1
"""Share of the cores in other programs' hands above which the report says so."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A variant's interval and its rounds as percentages of the width of a scale."""

    name: str
    left: float
    width: float
    points: tuple[float, ...]
    zero: float


@dataclass(frozen=True, slots=True)
class TrialSection:
    """The trials as text, with the figures of a chart."""

    verdict: str
    grid: Grid
    intervals: tuple[Interval, ...]
    scale: tuple[str, str]  # the savings at both ends of the chart
    losses: Grid | None  # of variants compared by losses
    notes: tuple[str, ...]


def section(diagnosis: Diagnosis) -> TrialSection | None:
    """Return the section, or None of a report without trials."""
    trials = diagnosis.trials
    if trials is None:
        return None
    intervals, scale = _intervals(trials.rows)
    return TrialSection(
        verdict(trials),
        _grid(trials),
        intervals,
        scale,
        _losses(trials.rows),
        (*_notes(trials), *_not_tried(trials)),
    )


def verdict(trials: Trials) -> str:
    """Return what was proved, in one sentence."""
    kept = [row for row in trials.rows if row.kept]
    if not any(row.measured for row in trials.rows):
        return "Nothing was measured: " + (
            "the trial was interrupted." if trials.ended_early else _why(trials)
        )
    best = next((row for row in trials.rows if row.name == trials.together), None)
    best = best or next(iter(kept), None)
    single = [row for row in trials.rows if row.name != trials.together and len(row.rules) < 2]  # noqa: PLR2004
    if best is None or best.measured is None:
        tried = counted(len(single), "change")
        return f"Measured: none of {tried} was shown to save time."
    speed = factor(1 / (1 - best.measured.share))
    return (
        f"Measured: {speed} as fast with {counted(len(kept), 'change')} of {len(single)} tried, "
        f"which {_saved(best)}{'' if best.examples != 1 else ' of the step'}."
    )


def _why(trials: Trials) -> str:
    """Return why no variant has a figure."""
    if trials.rounds or any(row.runs for row in trials.rows):
        return "no variant could be timed."
    return "the time was over before the first round ended; allow more with --minutes."


def saved(measured: Measured | None) -> str:
    """Return a measured saving: "saves 31 % (28 to 34 %)"; "" of none."""
    if measured is None:
        return ""
    low, high = _percent(measured.low), _percent(measured.high)
    match measured.difference:
        case Difference.SAVES:
            return f"saves {_percent(measured.share)} % ({low} to {high} %)"
        case Difference.COSTS:
            costs = -measured.share
            return f"costs {_percent(costs)} % ({_percent(-measured.high)} to {_percent(-measured.low)} %)"
        case Difference.NONE:
            return f"no difference that this could show ({low} to {high} %)"
        case Difference.UNKNOWN:
            return "unknown, because the machine was too noisy to tell"


def _saved(row: Trial) -> str:
    """Return what a variant saved: of the step, or per example where a step has another number of examples."""
    found = saved(row.measured)
    return f"{found} per example" if found and row.examples != 1 else found


def _named(row: Trial) -> str:
    """Return what a variant changes, and the rule that advises it."""
    name = text.prose(row.name)
    return f"{text.capitalized(row.action)} ({name})" if row.action else name


def _percent(value: float) -> str:
    return f"{round(100 * value):+d}".removeprefix("+") if round(100 * value) else "0"


def _grid(trials: Trials) -> Grid:
    rows = [
        (
            _named(row),
            saves(row.promised) or "nothing",
            _saved(row) or f"not measured: {text.prose(row.missing)}",
            trained(row.training),
            milliseconds(row.step_ms),
        )
        for row in trials.rows
    ]
    columns = ("change", "promised", "measured", "trains the same?", "step")
    return Grid(columns, ("text", "text", "text", "text", "number"), tuple(rows))


def trained(training: TrainingMatch | None) -> str:  # noqa: PLR0911 - one case a state
    """Return whether a variant trains the same, as a clause."""
    if training is None:
        return "unknown: it did not run"
    match training.state:
        case TrainingState.EQUAL:
            return f"yes: equal weights after {training.step} steps"
        case TrainingState.DIFFERENT:
            return (
                f"NO: other weights after {training.step} steps, which this change should not cause"
            )
        case TrainingState.NOT_FINITE:
            return "NO: weights became infinite or NaN"
        case TrainingState.LOSSES:
            usual = (
                "" if not training.usual else f", two runs as it is by {_relative(training.usual)}"
            )
            return f"losses differ by up to {_relative(training.apart)}{usual}"
        case TrainingState.CHANGED:
            return f"not compared, because {text.prose(training.why)}: compare the accuracy"
        case TrainingState.UNKNOWN:
            return f"unknown: {text.prose(training.why)}"


def _relative(value: float | None) -> str:
    if value is None:
        return "an unknown amount"
    return share(value) if value >= 1e-3 else f"{value:.1g} of their value"  # noqa: PLR2004 - a tenth of a percent


def _intervals(rows: Sequence[Trial]) -> tuple[tuple[Interval, ...], tuple[str, str]]:
    """Return the intervals on one scale that has zero on it, and the ends of the scale."""
    measured = [(row.name, row.measured) for row in rows if row.measured is not None]
    values = [value for _, one in measured for value in (one.low, one.high, *one.rounds)]
    low, high = min([0.0, *values]), max([0.0, *values])
    wide = (high - low) or 1.0

    def at(value: float) -> float:
        return round(100 * (value - low) / wide, 2)

    found = tuple(
        Interval(
            text.prose(name),
            at(one.low),
            round(at(one.high) - at(one.low), 2),
            tuple(map(at, one.rounds)),
            at(0.0),
        )
        for name, one in measured
    )
    return found, (f"{_percent(low)} %", f"{_percent(high)} %")


def _losses(rows: Sequence[Trial]) -> Grid | None:
    """Return the losses of the first steps beside each other, of the variants compared by them."""
    compared = [
        row
        for row in rows
        if row.training is not None
        and row.training.state in (TrainingState.LOSSES, *BROKEN)
        and row.training.losses
    ]
    if not compared:
        return None
    steps = max(len(row.training.losses) for row in compared if row.training)
    kinds = ("text", *("number" for _ in range(steps)))
    cells: list[tuple[str, ...]] = []
    for row in compared:
        losses = row.training.losses if row.training else ()
        cells.append((f"as it is ({text.prose(row.name)})", *(f"{a:.6g}" for a, _ in losses)))
        cells.append((text.prose(row.name), *(f"{b:.6g}" for _, b in losses)))
    return Grid(("loss", *(f"step {n + 1}" for n in range(steps))), kinds, tuple(cells))


def _notes(trials: Trials) -> tuple[str, ...]:
    runs = f"{counted(trials.runs, 'run')} in {counted(trials.rounds, 'round')}"
    notes = [
        (
            f"{runs}, {trials.minutes:.0f} minutes; a step of the program as it is takes "
            f"{milliseconds(trials.as_is_ms)}. The intervals are 95 % intervals."
        )
    ]
    if trials.as_is is not None:
        notes.append(f"The program as it is against itself: {_itself(trials.as_is)}.")
    if trials.foreign >= BUSY:
        notes.append(f"Other programs used {share(trials.foreign)} of the cores meanwhile.")
    if not trials.layer:
        notes.append("The runs wrote their files where the program writes them.")
    if trials.ended_early:
        notes.append("The trial was interrupted: these are the rounds until then.")
    return tuple(notes)


def _itself(measured: Measured) -> str:
    if measured.difference is Difference.NONE:
        return f"no difference ({_percent(measured.low)} to {_percent(measured.high)} %)"
    if measured.difference is Difference.UNKNOWN:
        low, high = _percent(measured.low), _percent(measured.high)
        return f"too different from run to run to compare ({low} to {high} %)"
    return f"its last run in a round {saved(measured)} against its first, so no smaller saving is claimed"


def _not_tried(trials: Trials) -> tuple[str, ...]:
    return tuple(
        f"Not tried: {text.prose(name)}, because {text.prose(why)}."
        for name, why in trials.not_tried
    )
