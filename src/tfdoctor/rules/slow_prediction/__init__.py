from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.run_work.call_overhead import OverheadKind, call_overheads
from tfdoctor.facts.run_work.called_work import CalledWork
from tfdoctor.facts.run_work.line_groups import line_groups
from tfdoctor.facts.run_work.lost_time import LostTime, code_at

__doc__, CODE = page(__file__)

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "whether an input depends on the last prediction is a question about the script"

SHOWN = 3
"""Places with remedies of their own: those that lose most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When slow predictions are reported: both limits must be reached by what a change saves."""

    share: float = share_limit(
        0.05, "Smallest share of the run that fewer and larger calls save, as of other savings"
    )
    least_ms: float = limit(1000.0, "Shortest time in ms that they save; below a second nobody waits for it")


ALL_AT_ONCE = """\
predictions = model.predict(np.stack(examples), batch_size=256, verbose=0)  # predictions[i] is of examples[i]"""

COMPILED = """\
@tf.function(reduce_retracing=True)
def predict_one(x):
    return model(x, training=False)

prediction = predict_one(tf.convert_to_tensor(x)).numpy()"""

LARGE = """\
predictions = model.predict(x, batch_size=512)"""

ARRAYS = """\
classes = predictions.argmax(axis=-1)  # NumPy for all predictions, no loop over them"""


def check(phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits = Limits()) -> Verdict:
    """Find predictions whose time goes into many calls and batches, or into Python."""
    made = calls.of(RunCall.PREDICT)
    if not made and not phases.of(Phase.PREDICTION):
        if phases.until or not calls.fits:  # of a loop in Python, only some ways to do it are seen
            return NotApplicable(reason=f"the run makes no predictions{phases.until}")
        return Healthy(summary="The run makes no predictions", concern=Concern.RUN)
    lost = LostTime.of(
        phases,
        call_overheads(calls, RunCall.PREDICT, phases.at(Phase.PREDICTION), steps.count if steps else 0),
        line_groups(phases.at(Phase.PREDICTION)),
        max(limits.least_ms, limits.share * phases.total_ms),
    )
    measures = lost.measures("prediction", Phase.PREDICTION)
    if not lost.slow and not lost.python:
        return Healthy(summary=_usual(phases, made), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=lost.summary("Predictions"),
        evidence=(*measures, *lost.tables),
        remedies=tuple(_remedies(lost)),
        run_effects=lost.effects(Phase.PREDICTION, calls),
        concern=Concern.RUN,
        about=RunCall.PREDICT if lost.slow else None,
    )


def _usual(phases: RunPhases, made: Sequence[MadeCall]) -> str:
    """State the time of prediction, and how many calls it is."""
    time_ms, share = phases.of(Phase.PREDICTION), phases.share(Phase.PREDICTION)
    text = f"Prediction takes {milliseconds(time_ms)} ({percent(share)} of the run)"
    if not made:
        return text
    times = sum(call.count for call in made)
    calls = "one call" if times == 1 else f"{number(times)} calls"
    return f"{text} in {calls}, {milliseconds(sum(call.ms for call in made) / times)} each"


def _remedies(lost: LostTime) -> Iterator[Remedy]:
    for one in lost.slow[:SHOWN]:
        if one.kind is OverheadKind.BATCH:
            yield Remedy("Predict in larger batches", code_at(one.at, LARGE), one.at)
        else:
            yield Remedy(ONE_CALL, code_at(one.at, ALL_AT_ONCE), one.at, ONCE)
            yield Remedy(
                DEPENDENT,
                code_at(one.at, COMPILED),
                one.at,
                "predict-on-batch",
                changes="all rows of a call go through the model at once",
            )
    for group in lost.python[:SHOWN]:
        action, code = "Compute with the array of all predictions", ARRAYS
        if group.work is CalledWork.MODEL:
            action = f"{ONE_CALL}, or call the model in a tf.function"
            code = f"{ALL_AT_ONCE}\n# or\n{COMPILED}"
        yield Remedy(action, code_at(group.at, code), group.at)


ONE_CALL = "Predict all examples with one call"

DEPENDENT = "Where an input depends on the last prediction, call predict_on_batch, or the model in a tf.function"


ONCE = "predict-once"
"""The edit of this rule."""
