"""What `tfdoctor try` measured, for every rendering: what was proved, tables, notes, and the picture."""

import math
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter

from tfdoctor.diagnosis import Diagnosis, Relationship, Together
from tfdoctor.diagnosis.rank import exceeds
from tfdoctor.diagnosis.trials import Difference, Measured, PartTrial, TrainingState, Trial, Trials, is_broken
from tfdoctor.report import trial_words, words
from tfdoctor.report.tables import Grid, texts
from tfdoctor.report.trial_words import number, promise
from tfdoctor.terms import text
from tfdoctor.terms.humanize import cell, counted, factor, milliseconds, percent, share
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound

PARTS_TITLE = "Measured without parts of the program"

BUSY = 0.1  # Share of the cores in other programs' hands above which the report says so

PAIR = 2

# Results of which the losses are shown beside those as it is.
COMPARED = (TrainingState.LOSSES, TrainingState.REORDERED, TrainingState.DIFFERENT, TrainingState.NOT_FINITE)

# The columns of the tables, with the kind of each.
CHANGES = {"change": "text", "promised": "text", "measured": "text", "trains the same?": "text", "step": "number"}
PARTS = {"experiment": "text", "line": "place", "recorded": "text", "measured": "text", "time": "number"}

# What is told of parts of which a program has one.
WITHOUT = {
    Part.INPUT: "Input always ready",
    Part.METRICS: "Without the metrics of compile",
    Part.SUMMARIES: "Without summaries",
}

LOWEST = -0.5  # Least end of the scale: a variant that takes several times as long would hide what the others save
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)
MOST_TICKS = 6  # Labels that fit beside each other on a phone


def verdict(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return what was proved, and what is left to try, the most important first; () of a report without trials."""
    trials = diagnosis.trials
    if trials is None:
        return ()
    told, left = proved(trials, diagnosis.together), _untried(diagnosis, trials.rows)
    # Where nothing helped, what is left to do comes before that.
    useless = tells(trials) and not any(row.kept or row.name == trials.together for row in trials.rows)
    return tuple(filter(None, (left, *told) if useless else (*told, left)))


def tells(trials: Trials) -> bool:
    """Return whether a trial tells what a change saves that the report advises; of any, if it advises none.

    It does not where the rounds of all differ too much.
    """
    if not trials.rows:
        return any(one.measured for one in trials.parts)
    found = [row.measured for row in _advised(trials.rows) if row.measured]
    return any(one.dropped or one.difference is not Difference.UNKNOWN for one in found)


def proved(trials: Trials, together: Together | None = None) -> tuple[str, ...]:
    """Return what was proved, in one sentence, and which short steps are none.

    ``together`` is what the report predicts of all changes: at most as much is predicted of some of them at once.
    """
    rows = trials.rows
    if trials.parts and not rows:
        shorter = [one for one in trials.parts if one.measured and one.measured.difference is Difference.SAVES]
        most = max(shorter, key=attrgetter("measured.share"), default=None)
        measured = f"{_part(most)}, {trial_words.less(most.measured)}" if most and most.measured else ""
        return (f"Measured: {measured}." if measured else "No part was shown to take time.",)
    if not any(row.measured for row in rows):
        return (f"Nothing was measured: {_why_nothing(trials)}",)
    kept = [row for row in rows if row.kept]
    tried = sum(bool(row.runs or row.measured) for row in rows if not row.parts)
    best = next((row for row in rows if row.name == trials.together), next(iter(kept), None))
    changed = [row for row in rows if row.training and row.training.state is TrainingState.CHANGED]
    changing = [row for row in changed if _saves(row) and not row.kept]
    if best is not None and best.measured is not None:
        found = _faster(best, best.measured, together, len(kept), tried)
    elif tried <= len(changing):
        found = ""
    elif not tells(trials):
        advised = _advised(rows)
        unclear = (trial_words.why_unclear(row.measured, row.training) for row in advised if row.measured)
        return (f"A trial has no clear result, because {next(unclear, text.prose(advised[0].missing))}.",)
    elif tried == 1:
        found = "the one change tried was not shown to save time."
    else:
        none = "neither" if tried == PAIR else "none"
        found = f"{none} of the {counted(tried, 'change')} tried was shown to save time."
    names = " and ".join(f"{text.prose(row.name)} ({trial_words.saved_by(row)})" for row in changing)
    verb = "saves time and changes" if len(changing) == 1 else "save time and change"
    other = f"{names} {verb} what is trained: compare the accuracy." if changing else ""
    first, *rest = filter(None, (found, other, no_savings(rows)))
    return (f"Measured: {first}", *rest)


def _saves(row: Trial) -> bool:
    return row.measured is not None and row.measured.difference is Difference.SAVES


def _advised(rows: Sequence[Trial]) -> Sequence[Trial]:
    return [row for row in rows if row.prediction] or rows


def _faster(row: Trial, measured: Measured, together: Together | None, kept: int, tried: int) -> str:
    """Return how much faster it is with how many of the changes tried, and whether that is more than predicted."""
    some = f"{counted(kept, 'change').partition(' ')[0]} of the {counted(tried, 'change')}"
    every = {1: "the one change", PAIR: "both changes"}.get(tried, f"all {counted(tried, 'change')}")
    less_time = f"{number(measured.share)} %"
    shorter = f"a step is {less_time} shorter" if row.examples == 1 else f"an example takes {less_time} less time"
    shorter = f"the whole run is {less_time} shorter" if measured.of_run else shorter
    predicted, beyond = row.prediction or (None if measured.of_run else together), ""
    if predicted and exceeds(row, predicted):
        within = "" if measured.low > predicted.share else ", which is within the interval"
        beyond = f", more than predicted (at most {percent(predicted.share)}{within})"
    speed, changes = factor(1 / (1 - measured.share)), every if tried in (1, kept) else some
    return f"{speed} as fast with {changes} tried: {shorter} ({trial_words.figures(measured)[1]}){beyond}."


def no_savings(rows: Sequence[Trial]) -> str:
    """Name the variants whose step is shorter because they train something else; "" without any."""
    names = [text.prose(row.name) for row in rows if _saves(row) and is_broken(row.training)]
    if len(names) == 1:
        return f"{names[0]} makes a step shorter, but does not train the same."
    few = " and ".join(names) if len(names) == PAIR else counted(len(names), "change").capitalize()
    return f"{few} make a step shorter, but do not train the same." if names else ""


def _why_nothing(trials: Trials) -> str:
    if trials.ended_early:
        return "the trial was interrupted."
    if reasons := {row.missing for row in trials.rows if row.runs}:
        return f"{text.prose(reasons.pop())}." if len(reasons) == 1 else "no variant could be timed."
    if trials.needed_minutes is None:
        return "the time was over before the first round ended; allow more with --minutes."
    enough = math.ceil(2.5 * trials.needed_minutes) / 2  # half minutes, with a quarter to spare
    return (
        f"a figure needs two rounds, which take about {trials.needed_minutes:.1f} minutes; allow them with "
        f"--minutes {enough:g}."
    )


def _untried(diagnosis: Diagnosis, rows: Sequence[Trial]) -> str:
    """Name the finding without a trial that promises more than all that were tried; "" where none does.

    Rules that bound the cost of a whole stage are none of them: the changes are those of other findings.
    """
    if not rows:
        return ""  # only parts were asked for
    ran = [row for row in rows if row.runs]
    relations = diagnosis.order.relations if diagnosis.order else ()
    apart = {rule for row in ran for rule in row.rules}
    apart |= {one.rule for one in relations if one.kind is Relationship.CEILING}
    left = [one for one in diagnosis.results if one.finding and one.rule.name not in apart]
    promises = [(promise(one.run, one.saving) or 0.0, one) for one in left]
    most, result = max(promises, key=itemgetter(0), default=(0.0, None))
    if result is None or most <= max((promise(row.promised_run, row.promised) or 0.0 for row in ran), default=0.0):
        return ""
    saved = words.run_saving(result.run, result.saving, diagnosis.run)
    promised = saved[0] if saved else f"{words.saves(result.saving, share_alone=True)} of the step"
    name, own = text.name(result.rule.name), any(not row.rules and not row.parts for row in ran)
    patch = f"; where a patch makes that change, give it as --patch {name}=FILE" if own else ""
    return f"{name}, which promises {promised}, was not tried{patch}."


def changes_grid(trials: Trials) -> Grid:
    """Return the variants: what each changes, its promise, what was measured, and how it trains."""
    rows = []
    for row in trials.rows:
        what, name = trial_words.what(row)
        told = trial_words.told(row, trial_words.against(row.prediction, row.measured))
        trained = trial_words.trained(row.training, row.runs)
        rows.append((f"{what} ({name})" if name else what, trial_words.promised(row), told, trained, step(row)))
    return texts(CHANGES, rows)


def step(row: Trial) -> str:
    """Return the time of a step, or of the whole run, with a variant."""
    if row.promised_run:
        return f"whole run {milliseconds(row.run_ms)}"
    more = "" if row.examples == 1 else f" with {row.examples:.3g} times the examples"
    return ", ".join([f"{milliseconds(row.step_ms)}{more}", *trial_words.energies(row.energy_j)])


def losses_grid(trials: Trials) -> Grid | None:
    """Return the losses of the first steps beside each other, of the variants compared by them; None of none."""
    lines = [
        (label, {one[0]: f"{one[at]:.6g}" for one in row.training.losses})
        for row in trials.rows
        if row.training and row.training.losses and row.training.state in COMPARED
        for label, at in ((f"as it is ({text.prose(row.name)})", 1), (text.prose(row.name), 2))
    ]
    steps = sorted({step for _, losses in lines for step in losses})
    cells = [(label, *(losses.get(step, "") for step in steps)) for label, losses in lines]
    return texts({"loss": "text", **{f"step {step}": "number" for step in steps}}, cells) if cells else None


def _part(one: PartTrial) -> str:
    """Return the experiment: "Without ModelCheckpoint"."""
    if one.part is Part.PREDICTION:
        return f"{text.name(one.name)} answered from its last result"
    return WITHOUT.get(one.part) or f"Without {text.name(one.name)}"


def parts_grid(trials: Trials) -> Grid:
    """Return the program without its parts: beside what was measured stands the bound of a rule for the same."""
    rows = []
    for one in trials.parts:
        told = trial_words.less(one.measured) if one.measured else f"no figure, because {text.prose(one.missing)}"
        if one.promised and one.measured:
            bound = f"{text.name(one.rule)} {words.saves(one.promised, share_alone=True)}"
            against = trial_words.against(one.promised, one.measured)
            told = words.joined(told, words.joined(bound, against, by=": "), by="; ")
        took = [milliseconds(ms) for ms in (one.as_is_ms, one.without_ms) if ms is not None]
        recorded = f"{share(one.share)} of what recurs" if one.share is not None else ""
        times = ", then ".join(took) if len(took) > 1 else ""
        rows.append((_part(one), cell(one.at or ""), recorded, told, times))
    return texts(PARTS, rows)


def notes(trials: Trials) -> Iterator[str]:
    """Yield what the figures rest on: runs and rounds, what shares are of, and what disturbed them."""
    minutes = f"{trials.minutes:.1f} minutes" if trials.minutes >= 1 else "under a minute"
    runs = counted(trials.runs, "run").capitalize()
    rounds = f"in {counted(trials.rounds, 'round')}" if trials.rounds else "and no full round"
    turns = " The runs of a round took turns, so that other programs of the host met all of them."
    yield f"{runs} {rounds}, {minutes}.{turns if trials.rounds_by_turns else ''}"
    if trials.parts:
        yield (
            "Each experiment takes one part out, without an edit. The program then trains otherwise, so no figure "
            "is a saving: it is the most that a change of the part can save."
        )
    if trials.as_is_ms is not None:
        yield (
            "Savings are shares of the step as it is in these runs, "
            f"{milliseconds(trials.as_is_ms)}, with 95 % intervals: positive is faster."
        )
    if trials.as_is_energy_j:
        took = " and ".join(trial_words.energies(trials.as_is_energy_j))
        yield f"A step as it is took {took} by the counters of energy: medians over runs, without an interval."
    if trials.as_is_run_ms is not None:
        yield (
            "Savings of the whole run are shares of the wall time of the process as it is in these runs, "
            f"{milliseconds(trials.as_is_run_ms)}."
        )
    if trials.as_is is not None:
        turned = trials.rounds_by_turns == trials.rounds
        yield f"The program as it is against itself: {trial_words.against_itself(trials.as_is, by_turns=turned)}."
    if trials.foreign >= BUSY:
        yield f"Other programs used {share(trials.foreign)} of the cores meanwhile."
    if not trials.layer:
        yield "The runs wrote their files where the program writes them."
    if trials.ended_early:
        yield "The trial was interrupted: these are the rounds until then."
    for name, why in trials.not_tried:
        yield f"Not tried: {text.prose(name)}, because {text.prose(why)}."


class Picture(Record, kw_only=True):
    """A variant on the scale, in percentages of its width, and the same in words."""

    range: tuple[float, float] | None  # where the interval begins, and its width; None if it says nothing
    points: tuple[float, ...]
    promise: float | None
    at_most: bool  # the promise is an upper bound
    below: bool  # something lies below the lower end of the scale
    above: bool
    words: str


def drawn(rows: Sequence[Trial]) -> tuple[list[tuple[float, str, bool]], list[Picture | None]]:
    """Return the ticks of a scale that shows the savings of these variants, and each on it; None without a figure.

    A tick is its position in percent of the width, its label, and whether it is zero.
    """
    values = [0.0]
    for row in rows:
        if row.measured is not None:
            values += (*row.measured.rounds, *_ends(row.measured), promise(row.prediction) or 0.0)
    inside = [min(1.0, max(LOWEST, value)) for value in values]
    ends = ((math.floor(min(inside) / step), math.ceil(max(inside) / step), step) for step in STEPS)
    first, last, step = next(end for end in ends if end[1] - end[0] < MOST_TICKS)
    last = max(last, first + 1)
    low, high = first * step, last * step

    def at(share: float) -> float:  # one beyond the scale is at its end
        return round(100 * (min(high, max(low, share)) - low) / (high - low), 2)

    def picture(row: Trial, one: Measured) -> Picture:
        ends, stated, promised = _ends(one), row.prediction, promise(row.prediction)
        everything = (*ends, *one.rounds)
        at_most = stated is not None and stated.bound is Bound.AT_MOST
        left, right = (at(end) for end in ends or (0.0, 0.0))
        rounds = f"Saving in each round: {', '.join(f'{number(share)} %' for share in one.rounds)}."
        interval = f"95 % interval: {trial_words.figures(one)[1]}." if ends else "No interval."
        beside = "" if promised is None else f"Promised: {'at most ' if at_most else ''}{number(promised)} %."
        return Picture(
            range=(left, round(right - left, 2)) if ends else None,
            points=tuple(at(share) for share in one.rounds if low <= share <= high),
            promise=None if promised is None else at(promised),
            at_most=at_most,
            below=min(everything) < low,
            above=max(everything) > high,
            words=words.joined(rounds, interval, beside, by=" "),
        )

    ticks = [(at(n * step), f"{number(n * step)} %", not n) for n in range(first, last + 1)]
    return ticks, [picture(row, row.measured) if row.measured else None for row in rows]


def _ends(measured: Measured) -> tuple[float, ...]:
    """Return the ends of an interval; () of one that says nothing, which need not be on the scale."""
    return () if measured.difference is Difference.UNKNOWN else (measured.low, measured.high)
