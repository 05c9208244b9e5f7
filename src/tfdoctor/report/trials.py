"""What `tfdoctor try` measured, as the page shows it: promised beside measured, and whether it trains the same."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import ClassVar

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rank import exceeds
from tfdoctor.diagnosis.savings import Relationship, RunSaving, Saving, Together
from tfdoctor.diagnosis.trials import Difference, Measured, PartTrial, TrainingState, Trial, Trials, is_broken
from tfdoctor.report import trial_words, words
from tfdoctor.report.tables import Grid
from tfdoctor.report.trial_scale import Picture, SavingScale
from tfdoctor.terms import text
from tfdoctor.terms.humanize import cell, counted, energy, factor, milliseconds, percent, share
from tfdoctor.terms.kinds import Part
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound, Finding

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


class TrialLine(Record, kw_only=True):
    """A variant as text, with its picture."""

    what: str  # what it changes
    name: str  # the rule, patch or variable; "" where `what` is the name
    rule: str  # the only rule whose finding it fixes, or ""
    promised: str
    measured: str
    remark: str  # how the promise compares with what was measured, or ""
    beside: str  # what it saves beside others, or in place of them, or ""
    rounds: str  # in how many rounds it was measured
    trained: str
    step: str
    tone: str  # "saves", "costs", "none", "unknown", or "broken"
    picture: Picture | None

    @property
    def brief(self) -> str:
        """What was measured, and how it contradicts the promise."""
        holds = not self.remark or self.remark in (trial_words.HOLDS, trial_words.HOLDS_AT_MOST)
        return self.measured if holds else f"{self.measured}; {self.remark}"

    @property
    def told(self) -> str:
        """What was measured, what that says of the promise, and how it does beside others."""
        return "; ".join(filter(None, (self.measured, self.remark, self.beside)))

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a row of the table."""
        change = f"{self.what} ({self.name})" if self.name else self.what
        return (change, self.promised, self.told, self.trained, self.step)


class TrialSection(Record, kw_only=True):
    """The trials as text, with the figures of a chart."""

    parts_title: ClassVar[str] = PARTS_TITLE
    verdict: tuple[str, ...]  # the most important sentence first
    lines: tuple[TrialLine, ...]
    ticks: tuple[tuple[float, str, bool], ...]  # of the scale: position, label, and which is zero
    losses: Grid | None  # of variants compared by losses
    notes: tuple[str, ...]
    tells: bool  # what the changes save; False where the rounds of all differ too much
    parts: Grid | None  # the program without its parts

    @property
    def grid(self) -> Grid:
        """The lines as a table."""
        return Grid(tuple(CHANGES), tuple(CHANGES.values()), tuple(line.cells for line in self.lines))

    def of(self, rules: Iterable[str]) -> TrialLine | None:
        """Return the trial of the change that one of these rules advises, the first that has one."""
        tried = {line.rule: line for line in reversed(self.lines)}
        return next((tried[rule] for rule in rules if rule in tried), None)


def section(diagnosis: Diagnosis) -> TrialSection | None:
    """Return the section, or None of a report without trials."""
    trials = diagnosis.trials
    if trials is None:
        return None
    rows, scale = trials.rows, SavingScale.of(trials.rows)
    told, left = verdict(trials, diagnosis.together), _untried(diagnosis, rows)
    tells = _tells(rows) if rows else any(one.measured for one in trials.parts)
    useless = tells and not any(row.kept or row.name == trials.together for row in rows)
    parts = tuple(map(_part_cells, trials.parts))
    return TrialSection(
        # Where nothing helped, what is left to do comes before that.
        verdict=tuple(filter(None, (left, *told) if useless else (*told, left))),
        lines=tuple(_line(row, scale) for row in rows),
        ticks=scale.ticks,
        losses=_losses(rows),
        notes=tuple(_notes(trials)),
        tells=tells,
        parts=Grid(tuple(PARTS), tuple(PARTS.values()), parts) if parts else None,
    )


def verdict(trials: Trials, together: Together | None = None) -> tuple[str, ...]:
    """Return what was proved, in one sentence, and which short steps are none.

    ``together`` is what the report predicts of all changes: at most as much is predicted of some of them at once.
    """
    rows = trials.rows
    if trials.parts and not rows:
        shorter = [one for one in trials.parts if one.measured and one.measured.difference is Difference.SAVES]
        most = max(shorter, key=attrgetter("measured.share"), default=None)
        measured = f"Measured: {_part(most)}, {trial_words.less(most.measured)}." if most and most.measured else ""
        return (measured or "No part was shown to take time.",)
    if not any(row.measured for row in rows):
        return (f"Nothing was measured: {_why_nothing(trials)}",)
    kept = [row for row in rows if row.kept]
    tried = sum(bool(row.runs) for row in rows if not row.parts)
    best = next((row for row in rows if row.name == trials.together), next(iter(kept), None))
    changed = [row for row in rows if row.training and row.training.state is TrainingState.CHANGED]
    changing = [row for row in changed if _saves(row) and not row.kept]
    if best is not None and best.measured is not None:
        proved = _faster(best, best.measured, _some_of(len(kept), tried), together)
    elif tried <= len(changing):
        proved = ""
    elif not _tells(rows):
        advised = _advised(rows)
        unclear = (trial_words.why_unclear(row.measured, row.training) for row in advised if row.measured)
        return (f"A trial has no clear result, because {next(unclear, text.prose(advised[0].missing))}.",)
    elif tried == 1:
        proved = "the one change tried was not shown to save time."
    else:
        none = "neither" if tried == PAIR else "none"
        proved = f"{none} of the {counted(tried, 'change')} tried was shown to save time."
    first, *rest = filter(None, (proved, _changing(changing), no_savings(rows)))
    return (f"Measured: {first}", *rest)


def _saves(row: Trial) -> bool:
    return row.measured is not None and row.measured.difference is Difference.SAVES


def _some_of(kept: int, tried: int) -> str:
    """Return how many of the changes help: "two of the three changes tried"."""
    if tried == 1:
        return "the one change tried"
    if kept == tried:
        return "both changes tried" if tried == PAIR else f"all {counted(tried, 'change')} tried"
    return f"{counted(kept, 'change').partition(' ')[0]} of the {counted(tried, 'change')} tried"


def _faster(row: Trial, measured: Measured, changes: str, together: Together | None) -> str:
    """Return how much faster the program is with what is kept, and by how much that is more than predicted."""
    less_time = f"{trial_words.number(measured.share)} %"
    shorter = f"a step is {less_time} shorter" if row.examples == 1 else f"an example takes {less_time} less time"
    shorter = f"the whole run is {less_time} shorter" if measured.of_run else shorter
    predicted, beyond = row.promised_run or row.promised or (None if measured.of_run else together), ""
    if predicted and exceeds(row, predicted):
        within = "" if measured.low > predicted.share else ", which is within the interval"
        beyond = f", more than predicted (at most {percent(predicted.share)}{within})"
    speed = factor(1 / (1 - measured.share))
    return f"{speed} as fast with {changes}: {shorter} ({trial_words.figures(measured)[1]}){beyond}."


def _changing(rows: Sequence[Trial]) -> str:
    """Name the variants that save time and change what is trained; "" of none."""
    if not rows:
        return ""
    names = " and ".join(f"{text.prose(row.name)} ({trial_words.saved_by(row)})" for row in rows)
    verb = "saves time and changes" if len(rows) == 1 else "save time and change"
    return f"{names} {verb} what is trained: compare the accuracy."


def no_savings(rows: Sequence[Trial]) -> str:
    """Name the variants whose step is shorter because they train something else; "" without any."""
    names = [text.prose(row.name) for row in rows if _saves(row) and is_broken(row.training)]
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]} makes a step shorter, but does not train the same."
    few = " and ".join(names) if len(names) == PAIR else counted(len(names), "change").capitalize()
    return f"{few} make a step shorter, but do not train the same."


def _tells(rows: Sequence[Trial]) -> bool:
    """Whether the trial tells of a change that the report advises what it saves; of any, if it advises none."""
    found = [row.measured for row in _advised(rows) if row.measured]
    return any(one.dropped or one.difference is not Difference.UNKNOWN for one in found)


def _advised(rows: Sequence[Trial]) -> Sequence[Trial]:
    return [row for row in rows if row.promised or row.promised_run] or rows


def _why_nothing(trials: Trials) -> str:
    """Return why no variant has a figure, and how much time the first rounds need if that is why."""
    if trials.ended_early:
        return "the trial was interrupted."
    reasons = {row.missing for row in trials.rows if row.runs}
    if reasons:
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
    promises = [
        (_promised(result.run, result.saving), result)
        for result in diagnosis.results
        if isinstance(result.outcome, Finding) and result.rule.name not in apart
    ]
    share, result = max(promises, key=itemgetter(0), default=(0.0, None))
    if result is None or share <= max((_promised(row.promised_run, row.promised) for row in ran), default=0.0):
        return ""
    saved = words.run_saving(result.run, result.saving, diagnosis.run)
    promised = saved[0] if saved else f"{words.promised(result.saving)} of the step"
    name, own = text.name(result.rule.name), any(not row.rules and not row.parts for row in ran)
    patch = f"; where a patch makes that change, give it as --patch {name}=FILE" if own else ""
    return f"{name}, which promises {promised}, was not tried{patch}."


def _promised(of_run: RunSaving | None, of_step: Saving | None) -> float:
    """Return the share of the run that is promised, or of the step; 0 without a figure."""
    return next(
        (share for share in (trial_words.promise(of_run), trial_words.promise(of_step)) if share is not None), 0.0
    )


def _line(row: Trial, scale: SavingScale) -> TrialLine:
    name, one = text.prose(row.name), row.measured
    if of_run := row.promised_run:
        most = "at most " if of_run.bound is Bound.AT_MOST else ""
        promised = f"{most}{share(of_run.share)} of the whole run"
        step = f"whole run {milliseconds(row.run_ms)}"
    else:
        promised = words.promised(row.promised)
        more = "" if row.examples == 1 else f" with {row.examples:.3g} times the examples"
        step = ", ".join([f"{milliseconds(row.step_ms)}{more}", *_energies(row.energy_j)])
    return TrialLine(
        what=text.capitalized(row.action) if row.action else name,
        name=name if row.action else "",
        rule=text.name(row.rules[0]) if len(row.rules) == 1 else "",
        promised=promised or "no promise",
        measured=trial_words.saved_by(row) or f"no figure: {text.prose(row.missing)}",
        remark=trial_words.against(row.promised_run or row.promised, one),
        beside=trial_words.beside(row.beside),
        rounds=counted(len(one.rounds), "round") if one and one.rounds else "",
        trained=trial_words.trained(row.training, row.runs),
        step=step,
        tone="broken" if is_broken(row.training) else one.difference.value if one else "unknown",
        picture=scale.picture(row),
    )


def _energies(by_source: Mapping[str, float]) -> list[str]:
    """Return the energy of a step by its counters: "15.1 J (GPU)"."""
    return [f"{energy(joules)} ({text.name(source)})" for source, joules in sorted(by_source.items())]


def _losses(rows: Sequence[Trial]) -> Grid | None:
    """Return the losses of the first steps beside each other, of the variants compared by them."""
    known = [(text.prose(row.name), row.training) for row in rows if row.training and row.training.losses]
    compared = [(name, training.losses) for name, training in known if training.state in COMPARED]
    if not compared:
        return None
    steps = sorted({step for _, losses in compared for step, _, _ in losses})
    cells: list[tuple[str, ...]] = []
    for name, losses in compared:
        for label, at in ((f"as it is ({name})", 1), (name, 2)):
            by_step = {one[0]: f"{one[at]:.6g}" for one in losses}
            cells.append((label, *(by_step.get(step, "") for step in steps)))
    return Grid(("loss", *(f"step {step}" for step in steps)), ("text", *["number"] * len(steps)), tuple(cells))


def _part(one: PartTrial) -> str:
    """Return the experiment: "Without ModelCheckpoint"."""
    if one.part is Part.PREDICTION:
        return f"{text.name(one.name)} answered from its last result"
    return WITHOUT.get(one.part) or f"Without {text.name(one.name)}"


def _part_cells(one: PartTrial) -> tuple[str, ...]:
    """Return the row of a part: beside what was measured stands the bound of the rule for the same, if any."""
    told = trial_words.less(one.measured) if one.measured else f"no figure, because {text.prose(one.missing)}"
    if one.promised and one.measured:
        bound = f"{text.name(one.rule)} {words.promised(one.promised)}"
        told = "; ".join([told, ": ".join(filter(None, (bound, trial_words.against(one.promised, one.measured))))])
    took = [milliseconds(ms) for ms in (one.as_is_ms, one.without_ms) if ms is not None]
    recorded = f"{share(one.share)} of what recurs" if one.share is not None else ""
    return _part(one), cell(one.at or ""), recorded, told, ", then ".join(took) if len(took) > 1 else ""


def _notes(trials: Trials) -> Iterator[str]:
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
        took = " and ".join(_energies(trials.as_is_energy_j))
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
