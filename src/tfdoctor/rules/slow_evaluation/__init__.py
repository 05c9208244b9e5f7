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

BY_HAND = "how the results of single evaluations go together is a question about the script"

SHOWN = 3
"""Places with remedies of their own: those that lose most."""

WITHIN_FIT = (RunCall.FIT, RunCall.EPOCH)
"""Calls around a validation, which epoch-boundary checks."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When slow evaluations are reported: both limits must be reached by what a change saves."""

    share: float = share_limit(
        0.05, "Smallest share of the run that fewer and larger calls save, as of other savings"
    )
    least_ms: float = limit(1000.0, "Shortest time in ms that they save; below a second nobody waits for it")


ALL_AT_ONCE = """\
results = model.evaluate(x, y, batch_size=512, return_dict=True)  # all examples, one call"""

COMPILED = """\
@tf.function(reduce_retracing=True)
def evaluate_batch(x, y):
    accuracy.update_state(y, model(x, training=False))  # a metric of Keras

for x, y in dataset.batch(512):
    evaluate_batch(x, y)
print(accuracy.result())"""

METRICS = """\
accuracy = np.mean(labels == predictions.argmax(axis=-1))  # all results at once, no loop over them"""


def check(phases: RunPhases, calls: RunCalls, steps: RunSteps | None, limits: Limits = Limits()) -> Verdict:
    """Find evaluations whose time goes into many calls and batches, or into Python."""
    made = [call for call in calls.of(RunCall.EVALUATE) if call.within not in WITHIN_FIT]
    found = call_overheads(calls, RunCall.EVALUATE, phases.at(Phase.EVALUATION), steps.count if steps else 0)
    lost = LostTime.of(
        phases,
        [one for one in found if one.call in made or one.kind is OverheadKind.CALL],
        # Metrics are computed during evaluations, and after the last one.
        line_groups(phases.at(Phase.EVALUATION, Phase.END)),
        max(limits.least_ms, limits.share * phases.total_ms),
    )
    if not made and not lost.python and not phases.of(Phase.EVALUATION):
        if phases.until or not calls.fits:  # of a loop in Python, only some ways to do it are seen
            return NotApplicable(reason=f"the run evaluates no model{phases.until}")
        return Healthy(summary="The run evaluates no model", concern=Concern.RUN)
    measures = lost.measures("evaluation", Phase.EVALUATION)
    if not lost.slow and not lost.python:
        return Healthy(summary=_usual(phases, made), evidence=measures, concern=Concern.RUN)
    return Finding(
        summary=lost.summary("Results"),
        evidence=(*measures, *lost.tables),
        remedies=tuple(_remedies(lost)),
        run_effects=lost.effects(Phase.EVALUATION, calls),
        concern=Concern.RUN,
        about=RunCall.EVALUATE if lost.slow else None,
    )


def _usual(phases: RunPhases, made: Sequence[MadeCall]) -> str:
    """State the time of evaluation, and how many calls it is."""
    time_ms, share = phases.of(Phase.EVALUATION), phases.share(Phase.EVALUATION)
    text = f"Evaluation takes {milliseconds(time_ms)} ({percent(share)} of the run)"
    if not made:
        return text
    times = sum(call.count for call in made)
    calls = "one call" if times == 1 else f"{number(times)} calls"
    return f"{text}, of it {milliseconds(sum(call.ms for call in made))} in {calls} outside of fit"


def _remedies(lost: LostTime) -> Iterator[Remedy]:
    for one in lost.slow[:SHOWN]:
        batches = one.kind is OverheadKind.BATCH
        action = "Evaluate in larger batches" if batches else "Evaluate all examples with one call"
        yield Remedy(action, code_at(one.at, ALL_AT_ONCE), one.at)
    for group in lost.python[:SHOWN]:
        action, code = "Compute metrics with the arrays of all results", METRICS
        if group.work is CalledWork.MODEL:
            action = "Evaluate with one call, or call the model and its metrics in a tf.function"
            code = f"{ALL_AT_ONCE}\n# or\n{COMPILED}"
        yield Remedy(action, code_at(group.at, code), group.at)
