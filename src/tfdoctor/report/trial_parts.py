"""The program without its parts, in words: experiments, which show the most that a change of each can save."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from tfdoctor.diagnosis import Difference, Measured, PartTrial
from tfdoctor.report.tables import Grid
from tfdoctor.report.trial_words import against, figures, of_what, unclear
from tfdoctor.report.words import promised
from tfdoctor.terms import text
from tfdoctor.terms.humanize import cell, milliseconds, share
from tfdoctor.terms.kinds import Part

TITLE = "Measured without parts of the program"

COLUMNS = ("experiment", "line", "recorded", "measured", "time")

EXPERIMENTS = (
    "Each experiment takes one part out, without an edit. The program then trains otherwise, so no figure is a "
    "saving: it is the most that a change of the part can save."
)

# What is told of parts of which a program has one.
WHAT = {
    Part.INPUT: "Input always ready",
    Part.METRICS: "Without the metrics of compile",
    Part.SUMMARIES: "Without summaries",
}


def grid(parts: Sequence[PartTrial]) -> Grid | None:
    """Return the parts as a table; None without any."""
    kinds = ("text", "place", "text", "text", "number")
    return Grid(COLUMNS, kinds, tuple(_cells(one) for one in parts)) if parts else None


def notes(parts: Sequence[PartTrial]) -> Iterator[str]:
    """Yield what the figures mean."""
    if parts:
        yield EXPERIMENTS


def largest(parts: Sequence[PartTrial]) -> str:
    """Return the part that takes most, as a clause: "Without ModelCheckpoint, 47 % less …"; "" of none."""
    shorter = [one for one in parts if one.measured and one.measured.difference is Difference.SAVES]
    if not shorter:
        return ""
    most = max(shorter, key=attrgetter("measured.share"))
    return f"{what(most)}, {less(most.measured)}"


def what(one: PartTrial) -> str:
    """Return the experiment: "Without ModelCheckpoint"."""
    if one.part is Part.PREDICTION:
        return f"{text.name(one.name)} answered from its last result"
    return WHAT.get(one.part) or f"Without {text.name(one.name)}"


def less(measured: Measured | None) -> str:
    """Return how much less time the program takes: "47 % less of the step (44 to 50 %)"; "" where not measured."""
    if measured is None:
        return ""
    amount, between = figures(measured)
    match measured.difference:
        case Difference.SAVES:
            return f"{amount} % less of the {of_what(measured)} ({between})"
        case Difference.COSTS:
            return f"longer: {amount} % of the {of_what(measured)} ({between})"
        case Difference.NONE:
            return f"no measurable difference ({between})"
        case Difference.UNKNOWN:
            return f"unknown, because {unclear(measured, None)}"


def _cells(one: PartTrial) -> tuple[str, ...]:
    took = [milliseconds(ms) for ms in (one.as_is_ms, one.without_ms) if ms is not None]
    return (
        what(one),
        cell(one.at) if one.at else "",
        f"{share(one.share)} of what recurs" if one.share is not None else "",
        "; ".join(filter(None, (_measured(one), _beside_bound(one)))),
        f"{took[0]}, then {took[1]}" if len(took) > 1 else "",
    )


def _measured(one: PartTrial) -> str:
    return less(one.measured) or f"no figure, because {text.prose(one.missing)}"


def _beside_bound(one: PartTrial) -> str:
    """Return the bound of the rule for the same part, and whether it holds; "" without one."""
    if one.promised is None or one.measured is None:
        return ""
    told = against(one.promised, one.measured)
    return f"{text.name(one.rule)} {promised(one.promised)}" + (f": {told}" if told else "")
