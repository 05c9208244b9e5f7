"""What `tfdoctor try` measured, as the page shows it: promised beside measured, and whether it trains the same."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from tfdoctor.diagnosis import (
    Diagnosis,
    Difference,
    Measured,
    Relationship,
    RunSaving,
    Saving,
    Together,
    TrainingState,
    Trial,
    Trials,
)
from tfdoctor.report import trial_parts, words
from tfdoctor.report.tables import Grid
from tfdoctor.report.trial_bounds import more_than_predicted
from tfdoctor.report.trial_scale import IntervalPicture, SavingScale, ScaleTick, promise
from tfdoctor.report.trial_words import (
    HOLDS,
    HOLDS_AT_MOST,
    against,
    against_itself,
    beside,
    interval,
    is_broken,
    number,
    saved_by,
    trained,
    why_unclear,
)
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, energy, factor, milliseconds, share
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Bound, Finding

BUSY = 0.1  # Share of the cores in other programs' hands above which the report says so

PAIR = 2

# Results of which the losses are shown beside those as it is.
COMPARED = (TrainingState.LOSSES, TrainingState.REORDERED)

COLUMNS = ("change", "promised", "measured", "trains the same?", "step")


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
    picture: IntervalPicture | None

    @property
    def brief(self) -> str:
        """What was measured, and how it contradicts the promise."""
        holds = self.remark in (HOLDS, HOLDS_AT_MOST)
        return "; ".join(filter(None, (self.measured, "" if holds else self.remark)))

    @property
    def told(self) -> str:
        """What was measured, what that says of the promise, and how it does beside others."""
        return "; ".join(filter(None, (self.measured, self.remark, self.beside)))

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of `COLUMNS`."""
        change = f"{self.what} ({self.name})" if self.name else self.what
        return (change, self.promised, self.told, self.trained, self.step)


class TrialSection(Record):
    """The trials as text, with the figures of a chart."""

    verdict: tuple[str, ...]  # the most important sentence first
    lines: tuple[TrialLine, ...]
    ticks: tuple[ScaleTick, ...]
    losses: Grid | None  # of variants compared by losses
    notes: tuple[str, ...]
    tells: bool = True  # what the changes save; False where the rounds of all differ too much
    parts: Grid | None = None  # the program without its parts
    parts_title: str = trial_parts.TITLE

    @property
    def grid(self) -> Grid:
        """The lines as a table."""
        kinds = ("text", "text", "text", "text", "number")
        return Grid(COLUMNS, kinds, tuple(line.cells for line in self.lines))

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What the marks of the pictures mean: the class of each and its label."""
        pictures = [line.picture for line in self.lines if line.picture]
        promised = {one.at_most for one in pictures if one.promise is not None}
        marks = [("point", "one round")] if pictures else []
        marks += [("range", "95 % interval")] if any(one.range for one in pictures) else []
        marks += [("promise", "promised")] if False in promised else []
        marks += [("promise most", "promised at most")] if True in promised else []
        outside = any(one.below or one.above for one in pictures)
        marks += [("beyond", "more, beyond the scale")] if outside else []
        return tuple(marks)

    def of(self, rules: Iterable[str]) -> TrialLine | None:
        """Return the trial of the change that one of these rules advises, the first that has one."""
        tried = {line.rule: line for line in reversed(self.lines)}
        return next((tried[rule] for rule in rules if rule in tried), None)


def section(diagnosis: Diagnosis) -> TrialSection | None:
    """Return the section, or None of a report without trials."""
    trials = diagnosis.trials
    if trials is None:
        return None
    scale = SavingScale.of(trials.rows)
    told, left = verdict(trials, diagnosis.together), _untried(diagnosis, trials)
    tells = _tells(trials.rows) if trials.rows else any(one.measured for one in trials.parts)
    useless = tells and not any(row.kept or row.name == trials.together for row in trials.rows)
    return TrialSection(
        # Where nothing helped, what is left to do comes before that.
        tuple(filter(None, (left, *told) if useless else (*told, left))),
        tuple(_line(row, scale) for row in trials.rows),
        scale.ticks,
        _losses(trials.rows),
        tuple(_notes(trials)),
        tells,
        trial_parts.grid(trials.parts),
    )


def verdict(trials: Trials, together: Together | None = None) -> tuple[str, ...]:
    """Return what was proved, in one sentence, and which short steps are none.

    ``together`` is what the report predicts of all changes.
    """
    rows = trials.rows
    if trials.parts and not rows:
        part = trial_parts.largest(trials.parts)
        return (f"Measured: {part}." if part else "No part was shown to take time.",)
    if not any(row.measured for row in rows):
        return (f"Nothing was measured: {_why(trials)}",)
    kept = [row for row in rows if row.kept]
    best = next((row for row in rows if row.name == trials.together), next(iter(kept), None))
    tried = sum(bool(row.runs) for row in rows if not row.parts)
    other = [row for row in rows if _saves_otherwise(row)]
    if best is not None and best.measured is not None:
        beyond = more_than_predicted(best, together)
        proved = f"{_faster(best, best.measured, _some_of(len(kept), tried))}{beyond}."
    elif tried <= len(other):
        proved = ""
    elif not _tells(rows):
        return (f"A trial has no clear result, because {_why_unclear(rows)}.",)
    elif tried == 1:
        proved = "the one change tried was not shown to save time."
    else:
        none = "neither" if tried == PAIR else "none"
        proved = f"{none} of the {counted(tried, 'change')} tried was shown to save time."
    first, *rest = filter(None, (proved, _changing(other), no_savings(rows)))
    return (f"Measured: {first}", *rest)


def _tells(rows: Sequence[Trial]) -> bool:
    """Whether the trial tells of a change that the report advises what it saves; of any, if it advises none."""
    found = [row.measured for row in _advised(rows) if row.measured]
    return any(one.dropped or one.difference is not Difference.UNKNOWN for one in found)


def _why_unclear(rows: Sequence[Trial]) -> str:
    """Return why the changes that the report advises have no clear result: that of the first with a figure."""
    tried = _advised(rows)
    found = (why_unclear(row.measured, row.training) for row in tried if row.measured)
    return next(found, text.prose(tried[0].missing))


def _advised(rows: Sequence[Trial]) -> Sequence[Trial]:
    return [row for row in rows if row.promised or row.promised_run] or rows


def _untried(diagnosis: Diagnosis, trials: Trials) -> str:
    """Name the finding without a trial that promises more than all that were tried; "" where none does.

    Rules that bound the cost of a whole stage are none of them: the changes are those of other findings.
    """
    ran = [row for row in trials.rows if row.runs]
    if not trials.rows:
        return ""  # only parts were asked for
    relations = diagnosis.order.relations if diagnosis.order else ()
    apart = {rule for row in ran for rule in row.rules}
    apart |= {one.rule for one in relations if one.kind is Relationship.CEILING}
    promises = [
        (_share(result.run, result.saving), result)
        for result in diagnosis.results
        if isinstance(result.outcome, Finding) and result.rule.name not in apart
    ]
    share, result = max(promises, key=itemgetter(0), default=(0.0, None))
    most = max((_share(row.promised_run, row.promised) for row in ran), default=0.0)
    if result is None or share <= most:
        return ""
    saved = words.run_saving(result.run, result.saving, diagnosis.run)
    promised = saved[0] if saved else f"{words.promised(result.saving)} of the step"
    name, own = text.name(result.rule.name), any(not row.rules and not row.parts for row in ran)
    patch = f"; where a patch makes that change, give it as --patch {name}=FILE" if own else ""
    return f"{name}, which promises {promised}, was not tried{patch}."


def _share(of_run: RunSaving | None, of_step: Saving | None) -> float:
    """Return the share of the run that is promised, or of the step; 0 without a figure."""
    shares = (promise(of_run), promise(of_step))
    return next((share for share in shares if share is not None), 0.0)


def _faster(row: Trial, measured: Measured, changes: str) -> str:
    """Return how much faster the program is with the changes that are kept, as a sentence without an end."""
    speed, share = factor(1 / (1 - measured.share)), f"{number(measured.share)} %"
    per_example = f"an example takes {share} less time"
    shorter = f"a step is {share} shorter" if row.examples == 1 else per_example
    shorter = f"the whole run is {share} shorter" if measured.of_run else shorter
    return f"{speed} as fast with {changes}: {shorter} ({interval(measured)})"


def _saves_otherwise(row: Trial) -> bool:
    """Say whether a variant saves time and is not kept, because it changes what is trained."""
    changed = row.training is not None and row.training.state is TrainingState.CHANGED
    saves_time = row.measured is not None and row.measured.difference is Difference.SAVES
    return changed and saves_time and not row.kept


def _changing(rows: Sequence[Trial]) -> str:
    """Name the variants that save time and change what is trained; "" of none."""
    if not rows:
        return ""
    names = " and ".join(f"{text.prose(row.name)} ({saved_by(row)})" for row in rows)
    verb = "saves time and changes" if len(rows) == 1 else "save time and change"
    return f"{names} {verb} what is trained: compare the accuracy."


def _some_of(kept: int, tried: int) -> str:
    """Return how many of the changes help: "two of the three changes tried"."""
    if tried == 1:
        return "the one change tried"
    if kept == tried:
        return "both changes tried" if tried == PAIR else f"all {counted(tried, 'change')} tried"
    few = counted(kept, "change").partition(" ")[0]
    return f"{few} of the {counted(tried, 'change')} tried"


def no_savings(rows: Sequence[Trial]) -> str:
    """Name the variants whose step is shorter because they train something else; "" without any."""
    names = [
        text.prose(row.name)
        for row in rows
        if row.measured and row.measured.difference is Difference.SAVES and is_broken(row.training)
    ]
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]} makes a step shorter, but does not train the same."
    few = " and ".join(names) if len(names) == PAIR else counted(len(names), "change").capitalize()
    return f"{few} make a step shorter, but do not train the same."


def _why(trials: Trials) -> str:
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


def _line(row: Trial, scale: SavingScale) -> TrialLine:
    rounds = len(row.measured.rounds) if row.measured else 0
    if of_run := row.promised_run:
        most = "at most " if of_run.bound is Bound.AT_MOST else ""
        promised = f"{most}{share(of_run.share)} of the whole run"
        step = f"whole run {milliseconds(row.run_ms)}"
    else:
        promised = words.promised(row.promised)
        more = "" if row.examples == 1 else f" with {row.examples:.3g} times the examples"
        step = ", ".join([f"{milliseconds(row.step_ms)}{more}", *_energies(row.energy_j)])
    tone = row.measured.difference.value if row.measured else "unknown"
    return TrialLine(
        what=text.capitalized(row.action) if row.action else text.prose(row.name),
        name=text.prose(row.name) if row.action else "",
        rule=text.name(row.rules[0]) if len(row.rules) == 1 else "",
        promised=promised or "no promise",
        measured=saved_by(row) or f"no figure: {text.prose(row.missing)}",
        remark=against(row.promised_run or row.promised, row.measured),
        beside=beside(row.beside),
        rounds=counted(rounds, "round") if rounds else "",
        trained=trained(row.training, row.runs),
        step=step,
        tone="broken" if is_broken(row.training) else tone,
        picture=scale.picture(row),
    )


def _energies(by_source: Mapping[str, float]) -> list[str]:
    """Return the energy of a step by its counters: "15.1 J (GPU)"."""
    return [f"{energy(joules)} ({text.name(source)})" for source, joules in sorted(by_source.items())]


def _energy_as_is(trials: Trials) -> Iterator[str]:
    """Say what a step of the program as it is took; nothing without a counter."""
    if trials.as_is_energy_j:
        took = " and ".join(_energies(trials.as_is_energy_j))
        yield f"A step as it is took {took} by the counters of energy: medians over runs, without an interval."


def _losses(rows: Sequence[Trial]) -> Grid | None:
    """Return the losses of the first steps beside each other, of the variants compared by them."""
    compared = [
        (text.prose(row.name), row.training.losses)
        for row in rows
        if row.training is not None
        and (row.training.state in COMPARED or is_broken(row.training))
        and row.training.losses
    ]
    if not compared:
        return None
    steps = sorted({step for _, losses in compared for step, _, _ in losses})
    cells: list[tuple[str, ...]] = []
    for name, losses in compared:
        as_is = {step: f"{loss:.6g}" for step, loss, _ in losses}
        own = {step: f"{loss:.6g}" for step, _, loss in losses}
        cells.append((f"as it is ({name})", *(as_is.get(step, "") for step in steps)))
        cells.append((name, *(own.get(step, "") for step in steps)))
    kinds = ("text", *("number" for _ in steps))
    return Grid(("loss", *(f"step {step}" for step in steps)), kinds, tuple(cells))


TURNS = " The runs of a round took turns, so that other programs of the host met all of them."


def _notes(trials: Trials) -> Iterator[str]:
    minutes = f"{trials.minutes:.1f} minutes" if trials.minutes >= 1 else "under a minute"
    runs = counted(trials.runs, "run").capitalize()
    rounds = f"in {counted(trials.rounds, 'round')}" if trials.rounds else "and no full round"
    turns = TURNS if trials.rounds_by_turns else ""
    yield f"{runs} {rounds}, {minutes}.{turns}"
    yield from trial_parts.notes(trials.parts)
    if trials.as_is_ms is not None:
        yield (
            "Savings are shares of the step as it is in these runs, "
            f"{milliseconds(trials.as_is_ms)}, with 95 % intervals: positive is faster."
        )
    yield from _energy_as_is(trials)
    if trials.as_is_run_ms is not None:
        yield (
            "Savings of the whole run are shares of the wall time of the process as it is in these runs, "
            f"{milliseconds(trials.as_is_run_ms)}."
        )
    if trials.as_is is not None:
        turned = trials.rounds_by_turns == trials.rounds
        yield f"The program as it is against itself: {against_itself(trials.as_is, by_turns=turned)}."
    if trials.foreign >= BUSY:
        yield f"Other programs used {share(trials.foreign)} of the cores meanwhile."
    if not trials.layer:
        yield "The runs wrote their files where the program writes them."
    if trials.ended_early:
        yield "The trial was interrupted: these are the rounds until then."
    for name, why in trials.not_tried:
        yield f"Not tried: {text.prose(name)}, because {text.prose(why)}."
