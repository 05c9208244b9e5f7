"""The host reads a value from the GPU in each step, and the GPU runs out of work.

## What it checks

Copies from GPU to host after which the GPU has nothing to do, because the next operation was launched only
then: the host had waited for the value (`.numpy()`, `float(loss)`, printing, `tf.print`, a callback that
looks at the logs).

## Why it matters

A host that does not wait launches ahead of the GPU, and its own time is hidden. One that reads a value
each step starts anew each time.

## How to fix

Read every N steps. Sum up metrics on the device (`keras.metrics`), and read them once an epoch. With Keras'
fit, `steps_per_execution` reads once for so many steps.

## Holds for

NVIDIA and AMD GPUs, with the GPU's work in the trace. On a CPU reading a value waits for nothing that
could run ahead, and costs nothing.

## Sources

- [Optimize TensorFlow GPU performance with the TensorFlow Profiler](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [Model training APIs, Keras: steps_per_execution](https://keras.io/api/models/model_training_apis/)
"""

from dataclasses import dataclass

from tfdoctor.facts.gpu.host_syncs import HostSyncs
from tfdoctor.facts.steps.steady_steps import STEP, SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.compile_time import CompileTime
from tfdoctor.humanize import counted, milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.05,
        "of the step that the GPU idles after values were read; a tenth of it is the copy's own",
        most=1.0,
    )
    steps: float = limit(
        3.0, "steps at least: where a single one is traced, the profiler ends it", least=2.0
    )
    syncs: float = limit(
        0.9, "per step: a value that is read every few steps costs a step now and then only"
    )


LIMITS = Limits()


def check(
    syncs: HostSyncs,
    steady: SteadySteps,
    breakdown: Breakdown,
    compiling: CompileTime | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Weigh the GPU's idle time after copies back."""
    if steady.unit != STEP:
        return NotApplicable(reason=steady.why_no_steps)
    if steady.rounds < limits.steps:
        few = f"only {counted(steady.rounds, 'usual step')} in the trace"
        return NotApplicable(reason=f"{few}: what recurs is not told; trace 20 steps or more")
    followed = steady.rounds - 1  # by another step: after the last one nothing is seen to wait
    each = steady.rounds / followed
    inside = max(0.0, syncs.host_ms * each - (compiling.host_ms if compiling else 0.0))
    between = max(0.0, syncs.between_ms * each - (compiling.between_ms if compiling else 0.0))
    share = (inside + between) / breakdown.step_ms if breakdown.step_ms else 0.0
    evidence = (
        Measure("of the step idle after a value was read", ratio(share), ratio(limits.share)),
        Measure("such reads per step", count(syncs.syncs), count(limits.syncs)),
        Measure("copies to the host per step", count(syncs.reads)),
    )
    said = (
        f"The GPU idles {milliseconds(inside + between)} per step after values that the host read"
    )
    if share < limits.share or syncs.syncs * each < limits.syncs:
        return Healthy(summary=said, evidence=evidence)
    return Finding(
        summary=said,
        evidence=evidence,
        remedies=(
            Remedy("Read values every 100 steps", EVERY),
            Remedy(
                "With Keras' fit, run several steps a call", STEPS, edit_id="steps-per-execution"
            ),
        ),
        effects=(
            Effect(Stage.HOST, 0.0, StepWork.READING_RESULTS, ms(inside), bound=Bound.AT_MOST),
            Effect(Stage.BETWEEN, 0.0, StepWork.READING_RESULTS, ms(between), bound=Bound.AT_MOST),
        ),
    )


EVERY = """\
if step % 100 == 0:
    print(f"step {step}: {float(loss):.4f}")  # waits for the GPU: not in each step"""

STEPS = "model.compile(optimizer, loss, steps_per_execution=16)"


def sick() -> Verdict:
    """The loss is printed in each step: the GPU idles 3 of 10 ms afterwards."""
    return check(*_example(HostSyncs(1.0, 1.0, 2.0, 1.0)))


def healthy() -> Verdict:
    """The loss is copied back, and the host has launched the next step by then."""
    return check(*_example(HostSyncs(1.0, 0.0)))


def _example(syncs: HostSyncs) -> tuple[HostSyncs, SteadySteps, Breakdown, None]:
    step = Breakdown.of(host=2.0, between=1.0, device=7.0)
    return syncs, SteadySteps.of(Steps.uniform(10, step.step_ms)), step, None
