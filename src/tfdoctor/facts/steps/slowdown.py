"""How much tracing slowed the steps."""

from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording

DISTORTED = 1.5  # Slowdown by tracing beyond which a third of the step or more is the profiler's own cost
# Slowdown beyond which most of the step is the profiler's own cost. No saving is predicted then: a Keras fit of
# 1.03 ms that took 2.26 ms while traced was predicted to take 0.37 ms with several steps a call, and took 0.88 ms.
MOSTLY_TRACING = 2.0
FASTEST = 0.25  # Share of the traced steps that tells slow and fast steps mixed from steps that tracing slows


def slowdown(recording: Recording, steps: Steps) -> float:
    """Return how many times as long a step took while it was traced; 1.0 where unknown.

    The profiler slows every step. Where the fastest quarter of the traced steps takes no longer than an untraced
    one, or input comes in bursts, slow and fast steps are mixed, as where XLA compiles for every second shape: the
    medians say nothing of tracing.
    """
    untraced = recording.manifest.steps.untraced if recording.manifest else None
    if untraced is None or untraced.median_ms is None or steps.in_bursts:
        return 1.0
    inside = steps.median_ms if untraced.of == "steps" else steps.median_call_ms
    traced = untraced.traced_ms or inside  # of calls that contain several steps
    slower = traced / untraced.median_ms
    fast = traced * steps.percentile_ms(100 * FASTEST) / (steps.median_ms or 1.0)
    mixed = untraced.of == "steps" and fast <= untraced.median_ms
    return 1.0 if mixed and slower > DISTORTED else slower
