from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.run_work.line_groups import LineGroup, line_groups
from tfdoctor.facts.run_work.run_tables import call_table, line_table
from tfdoctor.rules.epoch_boundary.causes import BoundaryCause, BoundaryWork
from tfdoctor.rules.epoch_boundary.search import between_epochs, per_epoch

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "how often the work between epochs is wanted is a question about the script"


@dataclass(frozen=True, slots=True)
class Limits:
    """When work between epochs is reported: a line has to reach the share and the time."""

    share: float = share_limit(
        0.05, "Smallest share of the run that a line between epochs takes, as of other savings"
    )
    least_ms: float = limit(
        1000.0, "Shortest time in ms of such a line in the run; below a second nobody waits for it"
    )
    validation: float = limit(
        1.0, "Smallest ratio of validation to all training steps; a fifth of the data takes about 0.1"
    )


def check(phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits = Limits()) -> Verdict:
    """Find what takes long between the epochs, by line."""
    if calls.epochs <= 1:
        return NotApplicable(reason="the run has not more than one epoch")
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    known = between_epochs(phases, calls, steps, validation=limits.validation)
    longest_ms = max((cause.time_ms for cause in known), default=0.0)
    measures = (
        Measure("time at the boundaries of epochs", ms(phases.of(Phase.BOUNDARIES))),
        Measure("longest time of a line between epochs", ms(longest_ms), ms(least_ms)),
    )
    causes = [cause for cause in known if cause.time_ms >= least_ms]
    if not causes:
        return Healthy(summary=_usual(phases, calls, steps), evidence=measures, concern=Concern.RUN)
    return _finding(causes, measures, phases, calls)


def _usual(phases: RunPhases, calls: RunCalls, steps: RunSteps | None) -> str:
    """State the time of boundaries and validation beside the steps."""
    between_ms = phases.of(Phase.BOUNDARIES)
    text = (
        f"Between epochs pass {milliseconds(between_ms)} ({percent(phases.share(Phase.BOUNDARIES))} of the run), "
        f"{milliseconds(between_ms / calls.epochs)} each"
    )
    validation_ms = sum(call.ms for call in per_epoch(calls, RunCall.EVALUATE))
    if not validation_ms or steps is None:
        return text
    beside = f"beside {milliseconds(steps.total_ms)} of training steps"
    return f"{text}; validation takes {milliseconds(validation_ms)} {beside}"


def _finding(
    causes: list[BoundaryCause], measures: tuple[Measure, ...], phases: RunPhases, calls: RunCalls
) -> Finding:
    table = Table.of(
        causes,
        ("your line", lambda cause: cause.at),
        ("work", lambda cause: str(cause.work)),
        ("time per epoch", lambda cause: ms(cause.time_ms / cause.times(calls.epochs))),
        ("time", lambda cause: ms(cause.time_ms)),
        ("share of the run", lambda cause: ratio(cause.time_ms / phases.total_ms)),
    )
    return Finding(
        summary=_summary(causes, phases, calls),
        evidence=(*measures, table, *_details(causes, phases, calls)),
        remedies=tuple(cause.remedy for cause in causes),
        run_effects=tuple(
            cause.effect(calls.epochs, same=calls.fits <= 1)
            for cause in causes
            if cause.work is not BoundaryWork.OF_FIT or calls.epochs >= MANY
        ),
        concern=Concern.RUN,
    )


MANY = 10
"""Epochs from which what fit takes between them has a price: no line shows its cause, and in fewer much of it may
be the recorder's."""


SAYS = {
    BoundaryWork.VALIDATION: "Validation takes more time than the training steps",
    BoundaryWork.OFTEN: "The model is validated many times in each epoch",
    BoundaryWork.SMALL_BATCHES: "Validation in small batches takes more time than the training steps",
    BoundaryWork.PREDICTION: "Each epoch makes predictions",
    BoundaryWork.SAVING: "Each epoch saves the model",
    BoundaryWork.DATASET: "Each epoch builds a dataset",
    BoundaryWork.FILLING: "Each epoch waits for its first batch",
    BoundaryWork.COLLECTING: "Each epoch collects Python's garbage",
    BoundaryWork.PLOT: "Each epoch draws pictures",
    BoundaryWork.PYTHON: "A loop in Python runs between the epochs",
    BoundaryWork.OF_FIT: "Keras' fit itself works between the epochs",
    BoundaryWork.OTHER: "The script works between the epochs",
}


def _summary(causes: Sequence[BoundaryCause], phases: RunPhases, calls: RunCalls) -> str:
    first, *others = causes
    share, times = percent(first.time_ms / phases.total_ms), first.times(calls.epochs)
    per = "per epoch" if times == calls.epochs else f"in each of {counted(times, 'epoch')}"
    time = f"{milliseconds(first.time_ms)} ({share} of the run), {milliseconds(first.time_ms / times)} {per}"
    text = f"{SAYS[first.work]} at {location(first.at)}{first.within}: {time}"
    if not others:
        return text
    all_ms = milliseconds(sum(cause.time_ms for cause in causes))
    return f"{text}; with {', '.join(location(cause.at) for cause in others)} {all_ms}"


def _details(causes: Sequence[BoundaryCause], phases: RunPhases, calls: RunCalls) -> tuple[Table, ...]:
    """Return the sampled lines and the calls of the causes."""
    places = {cause.at for cause in causes}
    groups: list[LineGroup] = [group for group in line_groups(phases.at(Phase.BOUNDARIES)) if group.at in places]
    made = [
        call
        for kind in (RunCall.EVALUATE, RunCall.PREDICT, RunCall.SAVE)
        for call in per_epoch(calls, kind)
        if call.at in places
    ]
    return (*line_table(groups, phases.total_ms), *call_table(made, phases.total_ms))
