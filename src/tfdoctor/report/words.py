"""The words of a report: each figure and each sentence of its parts has one function, for every rendering."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from tfdoctor.diagnosis import Diagnosis, PhaseLine, Result, RunAccount, WorkersTime
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, RunSaving, Saving, Takes, Together
from tfdoctor.diagnosis.step import PARTS, Account, AccountState, StepsSummary, untraced_beside
from tfdoctor.terms import text
from tfdoctor.terms.humanize import duration, milliseconds, share, with_noun
from tfdoctor.terms.verdict import Bound, Concern, Finding, Healthy, Recurrence, Severity

# The parts of a step: the label in the bar, the charts and the tables; the largest part in the verdict, "including
# 12 ms <...>"; and what a part without a finding is, "6.9 ms of each step are <...> without a finding".
PART_WORDS = {
    "input": ("input wait", "waiting for input", "spent waiting for input"),
    "transfer": ("transfers", "copying between host and device", "spent on copies between host and device"),
    "host": ("host", "in Python and op dispatch on the host", "host time"),
    "device": ("device", "computing", "compute time"),
    "collective": ("collectives", "in collectives", "collective time"),
    "between": ("between steps", "between steps", "time between steps"),
    "unknown": ("unaccounted for", "unaccounted for", "time of an unknown part"),
}
PART_LABELS = {part: label for part, (label, *_) in PART_WORDS.items()}

WORKER_LINES = 4  # That are shown of all worker processes
FEW = 2  # Traced steps up to which none is called typical


def is_known(value: float | None) -> TypeGuard[float]:
    """Return whether there is a number, and a finite one."""
    return value is not None and math.isfinite(value)


def listed(rules: Sequence[str]) -> str:
    """Return the names of rules as a list in a sentence."""
    *most, last = map(text.name, rules)
    return f"{', '.join(most)} and {last}" if most else last


def joined(*texts: str, by: str = ", ") -> str:
    """Return the texts that say something, in one."""
    return by.join(filter(None, texts))


def step_count(steps: StepsSummary) -> int:
    """Return how many steps were seen: at least one a row."""
    return max(steps.count, len(steps.rows))


def parts_of(breakdown_ms: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the parts of a breakdown that take time, in their order."""
    return [(part, breakdown_ms[part]) for part in PARTS if 0 < breakdown_ms.get(part, 0.0) < math.inf]


def segments(steps: StepsSummary) -> list[tuple[str, str, str, float]]:
    """Return the parts of the step's bar: part, time, share of the step in words and as a figure."""
    parts = parts_of(steps.shown_breakdown_ms)
    whole = sum(time for _, time in parts)
    return [(part, milliseconds(time), share(time / whole), time / whole) for part, time in parts]


def pace_ms(diagnosis: Diagnosis) -> float | None:
    """Return the median step outside of the traced window, where the parts and savings are of other, traced ones.

    None where the traced ones take as long, where a step without the profiler's cost is shown anyway, and where the
    mean is shown, because the input stalls some steps.
    """
    steps = diagnosis.steps
    typical = step_count(steps) > FEW and not steps.stalled
    if not typical or steps.untraced_ms is not None:
        return None
    return untraced_beside(steps.shown_ms, diagnosis.conditions.untraced_ms)


def each(diagnosis: Diagnosis) -> str:
    """Return which steps the figures are of: of one or two traced steps none is typical."""
    count = step_count(diagnosis.steps)
    if count > FEW:
        return "each traced step" if pace_ms(diagnosis) else "each step"
    return "the traced step" if count == 1 else "each of the two traced steps"


def gains(time: Saving | Takes | Together | None) -> bool:
    """Return whether there is a time that a change saves, or may save."""
    return time is not None and 0 < time.ms_per_step < math.inf


def at_most(bound: Bound) -> str:
    """Return how a saving begins: with nothing, unless it is an upper bound."""
    return "at most " if bound is Bound.AT_MOST else ""


def saves(saving: Saving | None, *, share_alone: bool = False) -> str:
    """Return what a change saves, "at most" when it is an upper bound; "" when there is no number.

    Beside figures of other steps the share stands alone.
    """
    if saving is None or not is_known(saving.ms_per_step):
        return ""
    if saving.ms_per_step <= 0:
        first = " and ".join(map(text.name, saving.after))
        verb = "is" if len(saving.after) == 1 else "are"
        return f"nothing until {first} {verb} fixed" if first else "nothing"
    amount = share(saving.share) if share_alone else f"{milliseconds(saving.ms_per_step)} ({share(saving.share)})"
    return f"{at_most(saving.bound)}{amount}"


def takes(time: Takes | None) -> str:
    """Return the time that a general finding names; "" when there is no number."""
    if time is None or not is_known(time.ms_per_step):
        return ""
    return f"{milliseconds(time.ms_per_step)} ({share(time.share)})"


def run_saving(
    saving: RunSaving | None, step: Saving | None, run: RunAccount | None, which: str = "each step"
) -> tuple[str, str] | None:
    """Return what a change saves of the run, and each time: "9 s of the run (7 %)", "0.9 s in each of 10 epochs".

    None where a report of the step says all. ``step`` is the saving of the same change in the step, and ``which``
    the steps that it is of.
    """
    if run is None or (step is not None and not run.whole):  # a traced window is made of steps
        return None
    of_step = f"{at_most(step.bound)}{_typical(step, which)}" if step and gains(step) else ""
    if saving is None or not is_known(saving.ms) or (step and saving.ms <= 0):
        return (of_step, "") if of_step else None
    if saving.ms <= 0:
        return "nothing", ""
    longer = ""
    if is_known(saving.extrapolated_share):
        epochs = with_noun(run.for_epochs, "epoch") if run.for_epochs else "more epochs"
        longer = f"{share(saving.extrapolated_share)} of a run of {epochs}"
    if run.ended_early and step and of_step:  # its length says nothing of a training
        return of_step, joined(longer, _rated(saving, step.share))
    of, part = "run" if run.whole else "traced window", joined(share(saving.share), _rated(saving, saving.share))
    amount = f"{at_most(saving.bound)}{duration(saving.ms)} of the {of} ({part})"
    return amount, joined(_each_time(saving, step, which), longer)


def _typical(step: Saving, which: str) -> str:
    return f"{milliseconds(step.ms_per_step)} of {which} ({share(step.share)})"


def _rated(saving: RunSaving, told: float) -> str:
    """Return the share that the severity follows, where no share that is told gives the same one."""
    shares = (told, *filter(is_known, [saving.extrapolated_share]))
    if Severity.of(saving.rated_share) in map(Severity.of, shares):
        return ""
    of = "a longer run" if saving.recurs is Recurrence.ONCE else "what recurs"
    return f"{share(saving.rated_share)} of {of}"


def _each_time(saving: RunSaving, step: Saving | None, which: str) -> str:
    """Return how often a change saves how much: "0.9 s in each of 10 epochs"; "" where that was not counted."""
    if saving.recurs is Recurrence.ONCE:
        return "once"
    of_steps, noun = saving.recurs is Recurrence.PER_STEP, saving.recurs.removeprefix("per ")
    if of_steps and step and gains(step):
        return _typical(step, which)
    if saving.times <= 1:
        return f"in one {noun}" if saving.times else ""
    if not is_known(saving.each_ms):
        return f"in {saving.times:,} {noun}s"
    return f"{(milliseconds if of_steps else duration)(saving.each_ms)} in each of {saving.times:,} {noun}s"


def is_about_money(result: Result) -> bool:
    """Return whether a result says what the run costs: it has a line of its own, since it is no change to make."""
    outcome = result.outcome
    return isinstance(outcome, Finding | Healthy) and outcome.concern is Concern.MONEY


def cost(results: Iterable[Result]) -> str:
    """Return what the run costs, as a sentence; "" where no price was given."""
    told = (result.outcome for result in results if is_about_money(result))
    return next((text.sentence(one.summary) for one in told if isinstance(one, Finding | Healthy)), "")


def order(of: Order | None, merged: Container[str] = ()) -> tuple[str, ...]:
    """Return in which order to fix findings, then which exclude, replace or bound others.

    `merged` are the findings that are told with their causes.
    """
    if of is None:
        return ()
    apart = (one for one in of.relations if one.kind is not Relationship.CEILING or one.rule not in merged)
    told, turns = list(map(_relation, apart)), list[str]()
    for turn in of.turns:
        time = f"{at_most(turn.bound)}{milliseconds(turn.ms_per_step)}{' more' if turns else ''}"
        turns.append(f"{text.name(turn.rule)} (saves {'nothing alone' if turn.ms_per_step <= 0 else time})")
    if len(turns) > 1:
        told.insert(0, f"Fix {turns[0]} first, then {', then '.join(turns[1:])}.")
    return tuple(told)


def _relation(relation: Relation) -> str:
    rule, others = text.name(relation.rule), listed(relation.others)
    why, alone = text.prose(relation.why), len(relation.others) == 1
    match relation.kind:
        case Relationship.FIRST:
            return f"Fix {others} before {rule}: {why}."
        case Relationship.INSTEAD:
            return f"Fix {others} or {rule}, not both: {why}."
        case Relationship.UNNEEDED:
            return f"Once {others} {'is' if alone else 'are'} fixed, {rule} saves nothing more."
        case Relationship.CEILING:
            name, them = ("names a cause", "that") if alone else ("name causes", "these")
            return (
                f"The saving of {rule} is an upper bound for the whole {why} time; {others} {name}: "
                f"fix {them} first, then record again."
            )


def accounts(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """Return what explains each large part of the step: part, label and sentences.

    They stand where there is more to say than that findings name all of it.
    """
    # The bars leave the profiler's cost out where that is much; what rules say of work is as it was traced.
    traced = " These are times of traced steps." if diagnosis.steps.untraced_ms else ""
    return [
        (
            text.name(one.part),
            PART_LABELS.get(one.part, text.name(one.part)),
            _account(one) + (traced if one.state is AccountState.NECESSARY else ""),
        )
        for one in diagnosis.accounts
        if one.state is not AccountState.NAMED
    ]


def _account(account: Account) -> str:
    """Return what is said of a part."""
    named = f"named by {', '.join(map(text.name, account.rules))}" if account.rules else ""
    why = [text.sentence(reason) for reason in account.why]
    if account.state is not AccountState.UNEXPLAINED:
        return joined(text.sentence(named), " ".join(why), by=" ")
    # Of the rest, necessary work may be a part, which the reasons name.
    rest = f"{'; part of the rest is' if why else ', the rest'} {named}" if named else ""
    return " ".join((f"{milliseconds(account.unexplained_ms)} without a finding{rest}.", *why))


def workers(of: WorkersTime | None) -> str:
    """Return how many workers there were, and what they did with their time; "" of none."""
    if of is None or not is_known(of.ms):
        return ""
    times = (
        (of.importing_ms, "starting and importing"),
        (of.waiting_ms, "waiting for work"),
        (of.working_ms, "working"),
    )
    does = (f"{duration(ms)} {what}" for ms, what in times if is_known(ms) and ms > 0)
    starts = f" ({listed(of.starts)})" if of.starts else ""
    many = f"{text.counted(of.number, 'worker process', 'worker processes')}{starts}".capitalize()
    return f"{many}: {joined(f'{duration(of.ms)} in all', *does)}."


def worker_lines(of: WorkersTime | None) -> tuple[PhaseLine, ...]:
    """Return the lines with most of their time, and what each calls or imports."""
    imports = (replace(line, calls=f"import {line.calls}") for line in of.imports) if of else ()
    lines = [line for line in (*(of.lines if of else ()), *imports) if is_known(line.ms)]
    largest = sorted(lines, key=lambda line: -line.ms)[:WORKER_LINES]
    return tuple(replace(line, calls=text.name(line.calls, 80)) for line in largest)
