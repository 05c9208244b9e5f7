from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


Limits = CallLimits

ONE_CALL = "Predict all examples with one call"
DEPENDENT = "Where an input depends on the last prediction, call predict_on_batch, or the model in a tf.function"
TOGETHER = "all rows of a call go through the model at once"

PREDICTIONS = CallRule(
    call=RunCall.PREDICT,
    phase=Phase.PREDICTION,
    noun="prediction",
    results="Predictions",
    nothing="made no predictions",
    batches=Remedy("Predict in larger batches", CODE["large"]),
    calls=(Remedy(ONE_CALL, CODE["all"]), Remedy(DEPENDENT, CODE["compiled"], changes=TOGETHER)),
    before=", before the loop",
    model=Remedy(f"{ONE_CALL}, or call the model in a tf.function", f"{CODE['all']}\n# or\n{CODE['compiled']}"),
    python=Remedy("Compute with the array of all predictions", CODE["arrays"]),
)


def check(phases: RunPhases, calls: RunCalls, limits: Limits = Limits()) -> Verdict:
    """Find predictions whose time goes into many calls and batches, or into Python."""
    return PREDICTIONS.check(phases, calls, limits)
