from tfdoctor.families.calls import FEW_ROWS, LARGE_ROWS, SMALL_BATCH_MS, WITHIN_FIT
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


class Limits(CallLimits):
    validation: float = limit(1.0)


RARELY = 0.1  # Share of the time that remains where work runs in every tenth epoch
SELDOM = 0.2  # Share of a validation's time that remains where it runs in every fifth epoch
FEWEST_FIRST = 3  # Long first steps from which on they come with each epoch: the first one of all also traces
# Epochs from which what fit takes between them has a price: no line shows its cause, and in fewer much of it may be
# the recorder's.
MANY = 10


class BoundaryWork(Record):
    """What is done between epochs: in the table, as a sentence, and what to do about it."""

    name: str
    says: str
    action: str
    code: str
    changes: str = ""
    left: float = RARELY  # share of sampled time that remains

    def place(
        self, at: Location | None, phase: Phase, ms: float, calls: RunCalls, made: int = 0, instead: str = "",
        **more: Any,
    ) -> RunPlace:  # fmt: skip
        """Return a line that does it: as often as it was ``made``, or where that is sampled, in each epoch."""
        epochs, times = calls.epochs, min(made or calls.epochs, calls.epochs)
        at_once = [Remedy(instead)] if instead else []
        each = "per epoch" if times == epochs else f"in each of {counted(times, 'epoch')}"
        return RunPlace(
            at=at, phase=phase, ms=ms, work=self.name,
            recurs=Recurrence.PER_EPOCH if times == epochs else Recurrence.PER_CALL,
            times=times if made or calls.fits <= 1 else 0,
            says=f"{self.says} at {{at}}{{within}}: {PART}, {milliseconds(ms / times)} {each}",
            remedies=(Remedy(self.action, CODE[self.code], changes=self.changes), *at_once),
            **({"left": self.left} | more),
        )  # fmt: skip


TUNED_MS = 100.0  # Wait per pass from which on it is none of Keras' own work between two epochs
OF_KERAS = ("keras.", "tf_keras.", "tensorflow.")
ITERATES = (".DatasetV2.__iter__", ".OwnedIterator.__next__")
RARER = "the callback works at every tenth epoch, or every 100th batch"
LESS_OFTEN = "Do this every few epochs, or once before the training if its result stays the same"
VALIDATION = BoundaryWork(
    "validation", "Validation takes more time than the training steps",
    "Validate every few epochs, or on fewer examples", "seldom",
)  # fmt: skip
OFTEN = BoundaryWork(
    "validation, many times in each epoch", "The model is validated many times in each epoch",
    "Validate less often", "by-steps", RARER,
)  # fmt: skip
SMALL_BATCHES = BoundaryWork(
    "validation in small batches", "Validation in small batches takes more time than the training steps",
    "Validate in larger batches", "large-batches",
)  # fmt: skip
PREDICTION = BoundaryWork(
    "prediction",
    "Each epoch makes predictions",
    "Predict fewer examples, or not in every epoch",
    "tenth-epoch",
    RARER,
)
SAVING = BoundaryWork(
    "saving", "Each epoch saves the model", "Save less often, and only the weights", "best-only", RARER
)
FILLING = BoundaryWork(
    "the wait for the first batch", "Each epoch waits for its first batch",
    "Shuffle names of files or a small buffer, and let one iterator go on over all epochs",
    "small-buffer", left=0.0,
)  # fmt: skip
PYTHON = BoundaryWork(
    "Python, item by item", "A loop in Python runs between the epochs", LESS_OFTEN, "tenth-or-once"
)
OF_FIT = BoundaryWork(
    "Keras' fit itself", "Keras' fit itself works between the epochs",
    "Give each epoch more steps: fit itself takes this time between two epochs", "long-epochs",
)  # fmt: skip
# TensorFlow waits where an iterator ends, for the thread that tunes its pipeline. That sleeps for up to as long as
# the pass took, and the call that wakes it may come too early: it runs before the pass counts as cancelled
# (tensorflow/core/framework/cancellation.cc and model.cc, TensorFlow 2.21).
TUNING = BoundaryWork(
    "the end of a pass over the data", "Each pass over the data ends with a wait for tf.data's autotuning",
    "Switch the pipeline's autotuning off, or let one iterator go on over all epochs", "without-autotuning",
    left=0.0,
)  # fmt: skip
OTHER = BoundaryWork("other work", "The script works between the epochs", LESS_OFTEN, "tenth-or-once")
# What sampled work is, between epochs; unknown work may be fit's.
SAMPLED = {
    CalledWork.DATASET: BoundaryWork(
        "a dataset that is built", "Each epoch builds a dataset",
        "Build the dataset once, before the loop over the epochs, if its data stay the same",
        "built-once", left=0.0,
    ),
    CalledWork.COLLECTING: BoundaryWork(
        "Python's garbage collection", "Each epoch collects Python's garbage", "Leave the collection to Python",
        "no-collection", left=0.0,
    ),
    CalledWork.PLOT: BoundaryWork(
        "a picture that is drawn", "Each epoch draws pictures", "Draw every tenth epoch, or after the training",
        "tenth-epoch", RARER,
    ),
    **dict.fromkeys((CalledWork.FILES, CalledWork.TEXTS, CalledWork.PARSING, *ONE_BY_ONE), PYTHON),
}  # fmt: skip


def check(
    phases: RunPhases, calls: RunCalls, steps: RunSteps | None, options: DataOptions | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Find what takes long between the epochs, by line."""
    if calls.epochs <= 1:
        return NotApplicable(reason="the run has not more than one epoch")
    tuned = not (options and options.not_tuned)  # else nothing waits for that
    found = (*_works(calls, steps, limits), *_sampled(phases, calls, steps, limits, tuned=tuned))
    known = sorted(found, key=lambda place: -place.saved_ms)
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    slow = SlowPlaces.of(phases, known, least_ms, whole=True)
    of_all, longest = "time at the boundaries of epochs", "longest time of a line between epochs"
    measures = slow.measures(of_all, longest, Phase.BOUNDARIES)
    if not slow.places:
        between_ms, share = phases.of(Phase.BOUNDARIES), percent(phases.share(Phase.BOUNDARIES))
        each = milliseconds(between_ms / calls.epochs)
        text = f"Between epochs pass {milliseconds(between_ms)} ({share} of the run), {each} each"
        validation_ms = sum(call.ms for call in _per_epoch(calls, RunCall.EVALUATE))
        if validation_ms and steps:
            beside = f"beside {milliseconds(steps.total_ms)} of training steps"
            text += f"; validation takes {milliseconds(validation_ms)} {beside}"
        return Healthy(summary=text, evidence=measures, concern=Concern.RUN)
    table = Table.of(
        slow.places,
        ("your line", lambda place: place.at),
        ("work", lambda place: place.work),
        ("time per epoch", lambda place: ms(place.ms / (place.times or calls.epochs))),
        ("time", lambda place: ms(place.ms)),
        ("share of the run", lambda place: ratio(place.ms / phases.total_ms)),
    )
    kinds = (RunCall.EVALUATE, RunCall.PREDICT, RunCall.SAVE)
    made = [call for kind in kinds for call in _per_epoch(calls, kind)]
    return slow.finding(measures, (table, *slow.details(made, Phase.BOUNDARIES, Phase.EVALUATION)))


def _per_epoch(calls: RunCalls, kind: RunCall) -> list[MadeCall]:
    """Return the calls of a kind within fit, or about once in each epoch of the user's loop."""
    made, epochs = calls.of(kind), calls.epochs
    within = [call for call in made if call.within in WITHIN_FIT and 2 * call.count >= epochs]
    each = [call for call in made if call not in within and call.at and 0.5 * epochs <= call.count <= 2.0 * epochs]
    return within + [call for call in each if not call.before_training and not call.after_training]


def _works(calls: RunCalls, steps: RunSteps | None, limits: Limits) -> Iterator[RunPlace]:
    """Yield what works between the epochs by calls, and the wait for the first batch.

    Of validations those that take longer than all training steps, with the share of them that remains. Loops of
    predictions are slow-prediction's, frequent saves frequent-saving's. Of the wait counts the median of each
    epoch's, since the first step of all also traces.
    """
    for call in _per_epoch(calls, RunCall.EVALUATE) if steps and steps.total_ms else ():
        if not steps or not call.at or call.ms < limits.validation * steps.total_ms:
            continue
        rows, batch_ms = rows_per_batch(call), call.each_ms / call.batches if call.batches else 0.0
        work, left = VALIDATION, SELDOM
        if rows and batch_ms and rows <= FEW_ROWS and batch_ms <= SMALL_BATCH_MS:
            work, left = SMALL_BATCHES, rows / LARGE_ROWS
        elif call.count > 2 * calls.epochs:
            work, left = OFTEN, calls.epochs / call.count
        elif batch_ms > steps.median_ms:  # without gradients, and yet longer than with them
            left = steps.median_ms / batch_ms
        yield work.place(call.at, Phase.EVALUATION, call.ms, calls, call.count, left=left)
    loops = [place.call for place in small_calls(calls, RunCall.PREDICT)]
    predicts = (call for call in _per_epoch(calls, RunCall.PREDICT) if call not in loops)
    saves = (call for call in _per_epoch(calls, RunCall.SAVE) if not calls.within_epochs(call))
    for work, phase, made in ((PREDICTION, Phase.PREDICTION, predicts), (SAVING, Phase.SAVING, saves)):
        yield from (work.place(one.at, phase, one.ms, calls, one.count) for one in made if one.at)
    if (waits_at := _waits_at(steps)) and steps and (long := steps.long):
        waits_ms = min(long.first_beyond_ms, long.first * long.first_median_ms)
        yield FILLING.place(waits_at, Phase.BOUNDARIES, waits_ms, calls, long.first)


def _waits_at(steps: RunSteps | None) -> Location | None:
    """Return the line whose first steps of passes wait; None of a few, or of none."""
    return steps.at if steps and steps.long and steps.long.first >= FEWEST_FIRST else None


def _sampled(
    phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits, *, tuned: bool
) -> Iterator[RunPlace]:
    """Yield the lines that work between the epochs, and in evaluations of the script's own.

    Of these, what the model and Python do item by item is slow-evaluation's. What the longest stretch has beyond
    others does not count, unless the account joins the stretches of several epochs.
    """
    fits = frozenset(call.at for call in calls.of(RunCall.FIT))
    timed = {call.at for call in calls.of(RunCall.EVALUATE)}
    iterates = frozenset(line.at for line in phases.lines if line.calls.endswith(ITERATES))
    for group in line_groups(phases.at(Phase.BOUNDARIES, Phase.EVALUATION)):
        spans = (span for span in phases.spans if span.phase is group.phase and span.at == group.at)
        times = [span.end_ms - span.start_ms for span in spans]
        evaluates = group.phase is Phase.EVALUATION
        if group.at in {_waits_at(steps), None} or (
            evaluates and (group.at in timed or group.work is not CalledWork.BULK)
        ):
            continue
        if evaluates and group.lines[0].exact:
            if steps and group.ms >= limits.validation * steps.total_ms and len(times) >= calls.epochs - 1:
                yield VALIDATION.place(group.at, group.phase, group.ms, calls, left=SELDOM)
            continue
        if evaluates and len(times) < FEWEST_FIRST:
            continue
        *_, second, longest = (0.0, 0.0, *sorted(times))
        known = len(times) >= calls.epochs - 1 and second
        usual_ms = (1.0 - (longest - second) / sum(times)) * group.ms if known else group.ms
        ends_ms = sum(line.ms for line in group.lines if _ends_iterator(line, fits, iterates))
        work = SAMPLED.get(group.work, OF_FIT if group.at in fits else OTHER)
        if tuned and 2 * ends_ms > group.ms and usual_ms >= TUNED_MS * calls.epochs:
            work, usual_ms = TUNING, group.ms  # by chance one wait is far longer than the others
        yield work.place(
            group.at, group.phase, usual_ms, calls, within=in_function(group), group=group,
            instead=AT_ONCE.get(group.work, "") if work is PYTHON else "",
            priced=work is not OF_FIT or calls.epochs >= MANY,
        )  # fmt: skip


def _ends_iterator(line: RunLine, fits: frozenset[Location | None], iterates: frozenset[Location | None]) -> bool:
    """Say whether a line only frees an iterator: there Keras' fit, or a loop over a dataset, runs no Python.

    The fit of another library, as in a callback, has the same name.
    """
    if line.at in fits and line.runs.startswith(OF_KERAS):
        return line.runs.endswith(".fit")
    return not line.calls and not line.runs and line.at in iterates
