from tfdoctor.families.kit import *
from tfdoctor.rules.run.known_fault.batch_tracing import BatchTracing

__doc__, CODE = page(__file__)

KERAS = "keras"
NUMBER = re.compile(r"(\d+)\.(\d+)")  # The parts of a version that a fault depends on

# Versions of Keras between which train_on_batch gives its function a new generator in each call (tf 67033).
FIRST, REPAIRED = (3, 0), (3, 7)


class Limits(RuleLimits):
    share: float = share_limit(0.9)
    calls: float = limit(10.0)


def check(tracing: BatchTracing, limits: Limits = Limits()) -> Verdict:
    """Look for the sign of the fault of the version in use."""
    number_of = NUMBER.match(tracing.versions.get(KERAS, ""))
    if not number_of or not FIRST <= (int(number_of[1]), int(number_of[2])) < REPAIRED:
        known = (f"{name} {tracing.versions[name]}" for name in ("tensorflow", KERAS) if name in tracing.versions)
        used = " and ".join(known)
        used = f"{used} that slows training" if used else "the libraries in use"
        return Healthy(summary=f"No fault is known of {used}", concern=Concern.RUN)
    keras, traced = f"Keras {tracing.versions[KERAS]}", tracing.traced
    tracings, at, again_ms = (traced.tracings, traced.at, traced.again_ms) if traced else (0, None, 0.0)
    share = min(1.0, tracings / tracing.calls) if tracing.calls else 0.0
    # the time of all traces but the first, about the same time as any other finding on this function
    effects = [tracing_again(traced, again_ms, tracings - 1, Recurrence.PER_STEP)] if traced and again_ms else []
    return judged(
        Measure("calls of train_on_batch", count(tracing.calls), count(limits.calls)),
        Measure.share("share of these calls that trace", share, limits.share),
        healthy=f"{keras} may trace train_on_batch in each call, and did not in this run",
        finding=f"{keras} traces its training function in {number(tracings)} of {number(tracing.calls)} "
        f"calls of train_on_batch{f' at {location(at)}' if at else ''}, a fault that Keras 3.7 repairs",
        remedies=[Remedy("Install Keras 3.7 or later", CODE["upgrade"], at)],
        run_effects=effects,
        severity=None if effects else Severity.WARNING,
        concern=Concern.RUN,
    )
