"""What a trial measured, in words: the saving with its interval, whether the promise held, how it trains."""

from tfdoctor.diagnosis import (
    BROKEN,
    Beside,
    Difference,
    Measured,
    RunSaving,
    Saving,
    TrainingMatch,
    TrainingState,
    Trial,
)
from tfdoctor.report.words import is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, percent
from tfdoctor.terms.verdict import Bound

MINUS = "\N{MINUS SIGN}"

NARROW = 0.04  # Width of an interval, in shares of the step, below which full percents hide how narrow it is
SMALL = 0.01  # Ends of an interval below it need a decimal: in full percents they would be zero
# Rounds from which on it is their spread that makes an interval wide: with three, Student's t alone doubles it.
ENOUGH_ROUNDS = 4

NOT_THE_SAME = "it does not train the same"

HOLDS, HOLDS_AT_MOST = "promise within the interval", "upper bound not exceeded"
# What is said of a promise that the interval does not contradict.
ABOVE = "above the upper bound, which is within the interval"
LEAST = 0.001  # Relative difference of losses below which the figure says nothing


def saved(measured: Measured | None, training: TrainingMatch | None = None) -> str:
    """Return a measured saving: "saves 31 % (28 to 34 %)"; "" of none.

    A variant that does not train the same saves nothing, however short its step is.
    """
    if measured is None:
        return ""
    found = _saved(measured, training)
    return f"{found}; {text.prose(measured.why)}" if measured.why else found


def _saved(measured: Measured, training: TrainingMatch | None) -> str:
    match measured.difference:
        case Difference.SAVES if is_broken(training):
            shorter, between = figures(measured)
            return f"{of_what(measured)} {shorter} % shorter ({between}), but no saving: {NOT_THE_SAME}"
        case Difference.SAVES:
            share, between = figures(measured)
            return f"saves {share} % {'of the whole run ' if measured.of_run else ''}({between})"
        case Difference.COSTS:
            share, between = figures(measured)
            return f"costs time: {share} % ({between})"
        case Difference.NONE:
            return f"no measurable difference ({interval(measured)})"
        case Difference.UNKNOWN if measured.dropped and not _is_infinite(training):
            rounds, least = counted(len(measured.rounds), "round"), percent(-max(measured.rounds))
            each = "in its one round" if len(measured.rounds) == 1 else f"in each of {rounds}"
            return f"at least {least} slower {each}, so it got no more"
        case Difference.UNKNOWN:
            return f"unknown, because {unclear(measured, training)}"


def _is_infinite(training: TrainingMatch | None) -> bool:
    return training is not None and training.state is TrainingState.NOT_FINITE


def unclear(measured: Measured, training: TrainingMatch | None) -> str:
    """Return why an interval is too wide to be shown: rounds that differ, or are few, and what to do."""
    if _is_infinite(training):
        return f"it got no more rounds: {why_unclear(measured, training)}"
    few = len(measured.rounds) < ENOUGH_ROUNDS
    remedy = "allow more minutes" if few else "use an idle machine, or allow more minutes"
    return f"{why_unclear(measured, training)}: {remedy}"


def why_unclear(measured: Measured, training: TrainingMatch | None) -> str:
    """Return the same without what to do."""
    if _is_infinite(training):
        return "its weights became infinite or NaN"
    if len(measured.rounds) < ENOUGH_ROUNDS:
        return f"{counted(len(measured.rounds), 'round')} are too few"
    return "its rounds differ too much"


def saved_by(row: Trial) -> str:
    """Return what a variant saves: of a step, or per example where its step has another number of examples."""
    found = saved(row.measured, row.training)
    return f"{found} per example" if found and row.examples != 1 else found


def of_what(measured: Measured | None) -> str:
    """Return what the shares of a measurement are of."""
    return "whole run" if measured and measured.of_run else "step"


def is_broken(training: TrainingMatch | None) -> bool:
    """Say whether a variant trains something else than it should."""
    return training is not None and training.state in BROKEN


def interval(measured: Measured) -> str:
    """Return the interval of a saving: "28 to 34 %"."""
    return figures(measured)[1]


def figures(measured: Measured) -> tuple[str, str]:
    """Return the share, and its interval with the unit; positive is faster."""
    low, high = measured.low, measured.high
    fine = high - low < NARROW or 0 < min(abs(low), abs(high)) < SMALL
    digits = 1 if fine else 0
    return number(measured.share, digits), f"{number(low, digits)} to {number(high, digits)} %"


def number(share: float, digits: int = 0) -> str:
    """Return a share in percent, without the unit: "31", "2.5"."""
    written = f"{100 * share:.{digits}f}"
    if not float(written):
        return "0"
    return written.replace("-", MINUS)


def against(promised: Saving | RunSaving | None, measured: Measured | None) -> str:
    """Return how a promise compares with the interval, as a clause; "" where there is nothing to compare."""
    if promised is None or measured is None or not is_known(promised.share):
        return ""
    if measured.difference is Difference.UNKNOWN:
        return ""
    over, under = promised.share - measured.high, measured.low - promised.share
    ceiling, what = promised.bound is Bound.AT_MOST, of_what(measured)
    if under > 0:
        start = "more than predicted, by at least" if ceiling else "promise too low by"
        return f"{start} {percent(under)} of the {what}"
    if not ceiling:
        too_high = f"promise too high by {percent(over)} of the {what}"
        return too_high if over > 0 else HOLDS
    if measured.share > promised.share:
        return ABOVE
    return HOLDS_AT_MOST


def beside(one: Beside | None) -> str:
    """Return what a change saves beside others, or in place of them, as a clause; "" of a change tried alone."""
    if one is None:
        return ""
    others = " and ".join(map(text.prose, one.others))
    start = f"in place of {others}" if one.instead else f"beside {others}"
    return f"{start}: {saved(one.measured)}"


def trained(training: TrainingMatch | None, runs: int) -> str:  # noqa: PLR0911 - one case a state
    """Return whether a variant trains the same, as a clause."""
    if training is None:
        return "unknown: it ended too early" if runs else "unknown: it did not run"
    match training.state:
        case TrainingState.EQUAL:
            return f"yes: equal weights after {training.step} steps"
        case TrainingState.DIFFERENT | TrainingState.REORDERED:
            return _other_weights(training)
        case TrainingState.NOT_FINITE:
            return "NO: weights became infinite or NaN"
        case TrainingState.LOSSES:
            return _losses(training.apart, training.usual)
        case TrainingState.CHANGED:
            return f"not compared, because {text.prose(training.why)}: compare the accuracy"
        case TrainingState.UNKNOWN:
            return f"unknown: {text.prose(training.why)}"


def _other_weights(training: TrainingMatch) -> str:
    """Return what other weights come from, as far as that is known, and how far the losses have moved."""
    found = f"other weights after {training.step} steps"
    losses = f"; losses differ by {_up_to(training.apart)}" if training.apart is not None else ""
    if training.state is TrainingState.DIFFERENT:
        return f"NO: {found}, although all runs as it is have equal weights{losses}"
    own = f", those of its own runs by {_up_to(training.own)}" if training.own is not None else ""
    return f"random numbers in another order: {found}{losses}{own}"


def _losses(apart: float | None, usual: float | None) -> str:
    """Return how far the losses are from those of the program as it is, beside what its own runs differ by."""
    if apart is None:
        return "unknown: the losses cannot be compared"
    if usual is not None and apart <= usual:
        return f"losses differ no more than those of two unchanged runs ({_up_to(usual)})"
    advice = ": compare the accuracy" if apart >= LEAST else ""
    if usual is None:
        return f"losses differ by {_up_to(apart)}{advice}"
    same = "are equal" if not usual else f"differ by {_up_to(usual)}"
    return f"losses differ by {_up_to(apart)}, those of two unchanged runs {same}{advice}"


def _up_to(apart: float) -> str:
    return f"up to {percent(apart)}" if apart >= LEAST else f"less than {percent(LEAST)}"


def against_itself(measured: Measured, *, by_turns: bool = False) -> str:
    """Return how the last run of a round, as it is, compares with the first, whether these took turns or not.

    Reports of earlier versions may call an interval that excludes zero no difference; they made none wider for it.
    """
    match measured.difference:
        case Difference.NONE if measured.low <= 0 <= measured.high:
            return f"no measurable difference ({interval(measured)})"
        case Difference.UNKNOWN:
            return _saved(measured, None)
        case _:
            share, between = figures(measured)
            wider = "" if measured.difference is Difference.NONE else ": all intervals are wider by that"
            cause = "runs of it differ" if by_turns else "the machine changed meanwhile"
            return (
                f"{share} % ({between}) from the first run of a round to the last, so {cause}{wider}; "
                "use an idle machine"
            )
