from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)


Limits = CallLimits

EVALUATIONS = CallRule(
    call=RunCall.EVALUATE,
    phase=Phase.EVALUATION,
    noun="evaluation",
    results="Results",
    nothing="evaluated no model",
    batches=Remedy("Evaluate in larger batches", CODE["all"]),
    calls=(Remedy("Evaluate all examples with one call", CODE["all"]),),
    model=Remedy(
        "Evaluate with one call, or call the model and its metrics in a tf.function",
        f"{CODE['all']}\n# or\n{CODE['compiled']}",
    ),
    python=Remedy("Compute metrics with the arrays of all results", CODE["metrics"]),
    after=(Phase.END,),  # metrics are computed during evaluations, and after the last one
    outside_fit=True,
)


def check(phases: RunPhases, calls: RunCalls, limits: Limits = Limits()) -> Verdict:
    """Find evaluations whose time goes into many calls and batches, or into Python."""
    return EVALUATIONS.check(phases, calls, limits)
