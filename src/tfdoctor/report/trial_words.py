"""What a trial measured of a change or without a part, in words: the saving, its promise, and how it trains."""

import math
from collections.abc import Mapping

from tfdoctor.diagnosis.savings import RunSaving, Saving
from tfdoctor.diagnosis.trials import Difference, Measured, TrainingMatch, TrainingState, Trial, is_broken
from tfdoctor.report import words
from tfdoctor.terms import text
from tfdoctor.terms.humanize import MINUS, counted, energy, percent, share
from tfdoctor.terms.verdict import Bound

NARROW = 0.04  # Width of an interval, in shares of the step, below which full percents hide how narrow it is
SMALL = 0.01  # Ends of an interval below it need a decimal: in full percents they would be zero
# Rounds from which on it is their spread that makes an interval wide: with three, Student's t alone doubles it.
ENOUGH_ROUNDS = 4

HOLDS, HOLDS_AT_MOST = "promise within the interval", "upper bound not exceeded"
ABOVE = "above the upper bound, which is within the interval"
LEAST = 0.001  # Relative difference of losses below which the figure says nothing


def what(row: Trial) -> tuple[str, str]:
    """Return what a variant changes, and its rule, patch or variable; "" where that says what it changes."""
    name = text.prose(row.name)
    return (text.capitalized(row.action), name) if row.action else (name, "")


def promised(row: Trial) -> str:
    """Return what is promised of a variant."""
    if of_run := row.promised_run:
        return f"{words.at_most(of_run.bound)}{share(of_run.share)} of the whole run"
    return words.saves(row.promised, share_alone=True) or "no promise"


def told(row: Trial, remark: str) -> str:
    """Return what was measured, what that says of the promise, and how it does beside others."""
    return words.joined(saved_by(row), remark, beside(row), by="; ")


def brief(row: Trial, remark: str) -> str:
    """Return what was measured, and how it contradicts the promise."""
    return words.joined(saved_by(row), "" if remark in (HOLDS, HOLDS_AT_MOST) else remark, by="; ")


def energies(by_source: Mapping[str, float]) -> list[str]:
    """Return the energy of a step by its counters: "15.1 J (GPU)"."""
    return [f"{energy(joules)} ({text.name(source)})" for source, joules in sorted(by_source.items())]


def saved(measured: Measured | None, training: TrainingMatch | None = None) -> str:
    """Return a measured saving: "saves 31 % (28 to 34 %)"; "" of none.

    A variant that does not train the same saves nothing, however short its step is.
    """
    if measured is None:
        return ""
    share, between = figures(measured)
    rounds, why = counted(len(measured.rounds), "round"), why_unclear(measured, training)
    infinite = training is not None and training.state is TrainingState.NOT_FINITE
    match measured.difference:
        case Difference.SAVES if is_broken(training):
            found = f"{of_what(measured)} {share} % shorter ({between}), but no saving: it does not train the same"
        case Difference.SAVES:
            found = f"saves {share} % {'of the whole run ' if measured.of_run else ''}({between})"
        case Difference.COSTS:
            found = f"costs time: {share} % ({between})"
        case Difference.NONE:
            found = f"no measurable difference ({between})"
        case Difference.UNKNOWN if infinite:
            found = f"unknown, because it got no more rounds: {why}"
        case Difference.UNKNOWN if measured.dropped and measured.rounds:
            each = "in its one round" if len(measured.rounds) == 1 else f"in each of {rounds}"
            found = f"at least {percent(-max(measured.rounds))} slower {each}, so it got no more"
        case Difference.UNKNOWN:
            idle = "" if len(measured.rounds) < ENOUGH_ROUNDS else "use an idle machine, or "
            found = f"unknown, because {why}: {idle}allow more minutes"
    return words.joined(found, text.prose(measured.why), by="; ")


def less(measured: Measured) -> str:
    """Return how much less time the program takes without a part: "47 % less of the step (44 to 50 %)"."""
    share, between = figures(measured)
    match measured.difference:
        case Difference.SAVES:
            return f"{share} % less of the {of_what(measured)} ({between})"
        case Difference.COSTS:
            return f"longer: {share} % of the {of_what(measured)} ({between})"
        case Difference.NONE | Difference.UNKNOWN:
            return saved(measured)


def why_unclear(measured: Measured, training: TrainingMatch | None) -> str:
    """Return why an interval is too wide to be shown: rounds that differ, or are few."""
    if training is not None and training.state is TrainingState.NOT_FINITE:
        return "its weights became infinite or NaN"
    if len(measured.rounds) < ENOUGH_ROUNDS:
        return f"{counted(len(measured.rounds), 'round')} are too few" if measured.rounds else "no round ended"
    return "its rounds differ too much"


def saved_by(row: Trial) -> str:
    """Return what a variant saves, of a step, or per example where its step has others; or why it has no figure."""
    found = saved(row.measured, row.training) or f"no figure: {text.prose(row.missing)}"
    return f"{found} per example" if row.measured and row.examples != 1 else found


def of_what(measured: Measured) -> str:
    """Return what the shares of a measurement are of."""
    return "whole run" if measured.of_run else "step"


def figures(measured: Measured) -> tuple[str, str]:
    """Return the share, and its interval with the unit, "28 to 34 %"; positive is faster."""
    low, high = measured.low, measured.high
    fine = high - low < NARROW or 0 < min(abs(low), abs(high)) < SMALL
    digits = 1 if fine else 0
    return number(measured.share, digits), f"{number(low, digits)} to {number(high, digits)} %"


def number(share: float, digits: int = 0) -> str:
    """Return a share in percent, without the unit: "31", "2.5"."""
    written = f"{100 * share:.{digits}f}"
    return written.replace("-", MINUS) if float(written) else "0"


def promise(*promised: Saving | RunSaving | None) -> float | None:
    """Return the share of the step or of the run by the first promise that has a figure; None of none."""
    return next((one.share for one in promised if one is not None and math.isfinite(one.share)), None)


def against(promised: Saving | RunSaving | None, measured: Measured | None) -> str:
    """Return how a promise compares with the interval, as a clause; "" where there is nothing to compare."""
    share = promise(promised)
    if promised is None or share is None or measured is None or measured.difference is Difference.UNKNOWN:
        return ""
    over, under = share - measured.high, measured.low - share
    ceiling, what = promised.bound is Bound.AT_MOST, of_what(measured)
    if under > 0:
        start = "more than predicted, by at least" if ceiling else "promise too low by"
        return f"{start} {percent(under)} of the {what}"
    if not ceiling:
        return f"promise too high by {percent(over)} of the {what}" if over > 0 else HOLDS
    return ABOVE if measured.share > share else HOLDS_AT_MOST


def beside(row: Trial) -> str:
    """Return what a change saves beside others, or in place of them, as a clause; "" of a change tried alone."""
    if row.beside is None:
        return ""
    others = " and ".join(map(text.prose, row.beside.others))
    return f"{'in place of' if row.beside.instead else 'beside'} {others}: {saved(row.beside.measured)}"


def trained(training: TrainingMatch | None, runs: int) -> str:
    """Return whether a variant trains the same, as a clause."""
    if training is None:
        return "unknown: it ended too early" if runs else "unknown: it did not run"
    apart, usual, own = (
        None if one is None else f"up to {percent(one)}" if one >= LEAST else f"less than {percent(LEAST)}"
        for one in (training.apart, training.usual, training.own)
    )
    losses = f"losses differ by {apart}"
    other = f"other weights after {training.step} steps"
    beside = f"; {losses}" if apart else ""
    match training.state:
        case TrainingState.EQUAL:
            told = f"yes: equal weights after {training.step} steps"
        case TrainingState.DIFFERENT:
            told = f"NO: {other}, although all runs as it is have equal weights{beside}"
        case TrainingState.REORDERED:
            its_own = f", those of its own runs by {own}" if own else ""
            told = f"random numbers in another order: {other}{beside}{its_own}"
        case TrainingState.NOT_FINITE:
            told = "NO: weights became infinite or NaN"
        case TrainingState.CHANGED:
            told = f"not compared, because {text.prose(training.why)}: compare the accuracy"
        case TrainingState.UNKNOWN:
            told = f"unknown: {text.prose(training.why)}"
        case TrainingState.LOSSES if training.apart is None:
            told = "unknown: the losses cannot be compared"
        case TrainingState.LOSSES if training.usual is not None and training.apart <= training.usual:
            told = f"losses differ no more than those of two unchanged runs ({usual})"
        case TrainingState.LOSSES:
            same = f"differ by {usual}" if training.usual else "are equal"
            unchanged = f", those of two unchanged runs {same}" if usual else ""
            told = f"{losses}{unchanged}{': compare the accuracy' if training.apart >= LEAST else ''}"
    return told


def against_itself(measured: Measured, *, by_turns: bool = False) -> str:
    """Return how the last run of a round, as it is, compares with the first, whether these took turns or not.

    Reports of earlier versions may call an interval that excludes zero no difference; they made none wider for it.
    """
    none = measured.difference is Difference.NONE
    if measured.difference is Difference.UNKNOWN or (none and measured.low <= 0 <= measured.high):
        return saved(measured)
    share, between = figures(measured)
    cause = "runs of it differ" if by_turns else "the machine changed meanwhile"
    wider = "" if none else ": all intervals are wider by that"
    return (
        f"{share} % ({between}) from the first run of a round to the last, so {cause}{wider}; use an idle machine"
    )
