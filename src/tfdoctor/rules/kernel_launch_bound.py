"""The GPU waits for the host to launch kernels.

## What it checks

The time in which no stream of the GPU works while the host dispatches the next operation, in gaps below a
millisecond. Waits for input, waits for a value that is read, and gaps whose next kernel was launched in time are
excluded.

## Why it matters

A kernel of 5 µs that takes the host 20 µs to launch leaves the GPU idle for most of the step.

## How to fix

Let XLA fuse many operations into one kernel (`jit_compile=True`), run several steps per call
(`steps_per_execution`), use a larger batch, and launch kernels from dedicated threads
(`TF_GPU_THREAD_MODE=gpu_private`). With `steps_per_execution`, Keras 3.7 and later can also unroll the loop over
the steps: set `model.unrolled_steps_per_execution` before `fit` (its default is 1). Tracing then takes longer,
and memory grows.

Where XLA has compiled the step already, its kernels are launched together, as a CUDA graph; what is left is the
call itself: run several steps in one call (`steps_per_execution`, in JAX `jax.lax.scan`) or give each step more
work.

## Holds for

NVIDIA and AMD GPUs, TensorFlow 2.3 and later, with the GPU's work in the trace. Profiling itself slows
launching: without it the gaps are shorter. A step of 57 kernels in one CUDA graph took 0.17 ms untraced and 0.8
ms traced (JAX 0.11.2 on an NVIDIA H100, 2026-11-22), so that the saving of steps below a millisecond is an
upper bound. Unrolling is known from the pull request that added it, which shows twice the speed for a MobileNet
with a batch of one, four steps per execution and all four unrolled; it was not measured by this project.

## Sources

- [Optimize TensorFlow GPU performance with the TensorFlow Profiler](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [XLA: Optimizing Compiler for Machine Learning](https://openxla.org/xla/tf2xla)
- [Keras pull request 20451: unrolled_steps_per_execution](https://github.com/keras-team/keras/pull/20451)
"""

from dataclasses import dataclass, replace

from tfdoctor.diagnosis.preconditions import figures_per_step
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.gpu.idle_gaps import GapSize, IdleGaps
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.framework import JAX, Framework
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Measure, Remedy, Stage, StepWork, Table, Verdict

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
PRECONDITIONS = (figures_per_step,)
BY_HAND = "the threads that launch kernels are set in the environment, not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.1,
        "Smallest share of the step in which the GPU idles while the host launches; profiling alone "
        "costs a few percent",
    )


MOSTLY = 0.5
"""Share of the compute time in XLA's instructions from which the step counts as compiled."""


def check(
    gaps: IdleGaps,
    breakdown: Breakdown,
    operations: Operations | None,
    framework: Framework,
    steady: SteadySteps,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the idle time during launches with the step."""
    share = gaps.launching_ms / breakdown.step_ms if breakdown.step_ms else 0.0
    label = "share of the step in which the GPU idles during launches"
    measures = (Measure.share(label, share, limits.share), Measure("kernels per step", count(gaps.kernels)))
    idle = milliseconds(gaps.launching_ms)
    summary = f"The GPU idles {idle} of {breakdown.each_step} while the host launches"
    if share < limits.share:
        return Healthy(summary=f"{summary} kernels", evidence=measures)
    compiled = framework.foreign or (operations.compiled if operations else 0.0) > MOSTLY
    remedies = _of_compiled(framework) if compiled else REMEDIES
    if steady.several_per_call:
        remedies = tuple(remedy for remedy in remedies if remedy not in IN_ONE_CALL)
    work = "the compiled step of " if compiled else ""
    return _finding(f"{summary} {work}{gaps.kernels:.0f} kernels", measures, gaps, remedies)


def _finding(summary: str, measures: tuple[Measure, ...], gaps: IdleGaps, remedies: tuple[Remedy, ...]) -> Finding:
    table = Table.of(
        gaps.sizes,
        ("gap length", str),
        ("gaps per step", lambda size: count(gaps.gaps[size])),
        ("idle time", lambda size: ms(gaps.sizes[size])),
        ("idle time during launches", lambda size: ms(gaps.dispatching[size])),
    )
    idle = ms(gaps.launching_ms)
    return Finding(
        summary=summary,
        evidence=(*measures, table),
        remedies=remedies,
        effects=(Effect(Stage.HOST, 0.0, StepWork.LAUNCHING, idle, bound=Bound.AT_MOST),),
    )


COMPILE = """\
model.compile(optimizer, loss, jit_compile=True)  # or @tf.function(jit_compile=True)"""

STEPS = "model.compile(optimizer, loss, steps_per_execution=16)"

PRIVATE = """\
import os
os.environ["TF_GPU_THREAD_MODE"] = "gpu_private"  # before TensorFlow is imported"""

UNROLLED = """\
model.compile(optimizer, loss, steps_per_execution=16)
model.unrolled_steps_per_execution = 4  # Keras 3.7 and later; before fit"""

SEVERAL = Remedy("Run several steps per call", STEPS, edit_id="steps-per-execution")
UNROLL = Remedy("Unroll some of the steps of one call, so that their loop waits less often", UNROLLED)
REMEDIES = (
    Remedy("Compile the step with XLA", COMPILE, edit_id="jit-compile"),
    SEVERAL,
    UNROLL,
    Remedy("Launch kernels from dedicated threads", PRIVATE),
)


def _of_compiled(framework: Framework) -> tuple[Remedy, ...]:
    """Return what helps where XLA has compiled the step already: fewer calls, or more work in each."""
    if framework.foreign and not framework.keras:
        return (SCANNED if framework.name == JAX else LOOPED), LARGER
    return SEVERAL, LARGER


SCAN = """\
@jax.jit
def train_steps(params, batches):  # each array of batches has a first dimension of several batches
    return jax.lax.scan(lambda params, batch: train_step(params, batch), params, batches)"""

LARGER = Remedy("Use a larger batch, adjust the learning rate and compare the accuracy")
LOOPED = Remedy("Run several steps in one compiled call")
SCANNED = replace(LOOPED, code=SCAN)
IN_ONE_CALL = (SEVERAL, LOOPED, SCANNED)


def example(
    launching_ms: float = 5.5,
    device_ms: float = 4.0,
    operations: Operations | None = None,
    framework: Framework = Framework(),
    steps: Steps | None = None,
) -> Verdict:
    """The GPU works for 4 ms of each 9.5 ms step."""
    sizes = dict.fromkeys(GapSize, 0.0) | {GapSize.SMALL: launching_ms}
    gaps = IdleGaps(launching_ms, {}, sizes, sizes, sizes, kernels=156.0, python_known=True)
    step = Breakdown.of(host=launching_ms, device=device_ms)
    steady = SteadySteps.of(steps or Steps.uniform(10, step.step_ms))
    return check(gaps, step, operations, framework, steady)


sick = example


def healthy() -> Verdict:
    """The same step, compiled with XLA."""
    return example(0.2)
