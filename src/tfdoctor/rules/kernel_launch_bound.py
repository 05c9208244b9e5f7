"""The GPU waits for the host to launch its kernels.

## What it checks

How long no stream of the GPU works while the host dispatches the next operation, in gaps below a millisecond;
waits for input, for a value that is read, and gaps whose next kernel was launched in time are left out.

## Why it matters

A kernel of 5 µs that takes the host 20 µs to launch leaves the GPU idle for most of the step.

## How to fix

Let XLA put many operations into one kernel (`jit_compile=True`), run several steps a call
(`steps_per_execution`), take a larger batch, and give the launching threads cores of their own
(`TF_GPU_THREAD_MODE=gpu_private`).

## Holds for

NVIDIA and AMD GPUs, TensorFlow 2.3 and later, with the GPU's work in the trace. Profiling itself slows
launching: on a real run the gaps are shorter.

## Sources

- [Optimize TensorFlow GPU performance with the TensorFlow Profiler](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [XLA: Optimizing Compiler for Machine Learning](https://openxla.org/xla/tf2xla)
"""

from dataclasses import dataclass

from tfdoctor.facts.gpu.idle_gaps import IdleGaps
from tfdoctor.facts.steps.steady_steps import STEP, SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds
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
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.1,
        "of the step that the GPU idles while the host launches; profiling alone costs some percent",
        most=1.0,
    )


LIMITS = Limits()


def check(
    gaps: IdleGaps, steady: SteadySteps, breakdown: Breakdown, limits: Limits = LIMITS
) -> Verdict:
    """Weigh the idle time that launching costs."""
    if steady.unit != STEP:
        return NotApplicable(reason=steady.why_no_steps)
    share = gaps.launching_ms / breakdown.step_ms if breakdown.step_ms else 0.0
    measures = (
        Measure("of the step idle while the host launches", ratio(share), ratio(limits.share)),
        Measure("kernels per step", count(gaps.kernels)),
    )
    said = f"The GPU idles {milliseconds(gaps.launching_ms)} per step while the host launches"
    if share < limits.share:
        return Healthy(summary=said, evidence=measures)
    rows = tuple(
        (size, count(gaps.gaps[size]), ms(gaps.sizes[size]), ms(gaps.dispatching[size]))
        for size in gaps.sizes
    )
    table = Table(("length of the gap", "per step", "idle", "while the host launches"), rows)
    return Finding(
        summary=f"{said} {gaps.kernels:.0f} kernels",
        evidence=(*measures, table),
        remedies=(
            Remedy("Compile the step with XLA", COMPILE, edit_id="jit-compile"),
            Remedy("Run several steps a call", STEPS, edit_id="steps-per-execution"),
            Remedy("Give the threads that launch cores of their own", PRIVATE),
        ),
        effects=(
            Effect(Stage.HOST, 0.0, StepWork.LAUNCHING, ms(gaps.launching_ms), bound=Bound.AT_MOST),
        ),
    )


COMPILE = """\
model.compile(optimizer, loss, jit_compile=True)  # or @tf.function(jit_compile=True)"""

STEPS = "model.compile(optimizer, loss, steps_per_execution=16)"

PRIVATE = """\
import os
os.environ["TF_GPU_THREAD_MODE"] = "gpu_private"  # before TensorFlow is imported"""


def sick() -> Verdict:
    """Steps of 10 ms in which the GPU works for 4."""
    return check(*_example(5.5))


def healthy() -> Verdict:
    """The same, compiled."""
    return check(*_example(0.2))


def _example(launching: float) -> tuple[IdleGaps, SteadySteps, Breakdown]:
    sizes = {"below 10 µs": 0.0, "10 to 100 µs": launching, "0.1 to 1 ms": 0.0, "above 1 ms": 0.0}
    gaps = IdleGaps(launching, {}, sizes, sizes, sizes, kernels=156.0, python_told=True)
    steady = SteadySteps.of(Steps.uniform(10, 4.0 + launching))
    return gaps, steady, Breakdown.of(host=launching, device=4.0)
