"""Copies between host and GPU run while no kernel does.

## What it checks

How long copies from the host to the GPU, and back, take while no kernel of the GPU runs; how large they
are, how fast, and whether the host's memory is pageable.

## Why it matters

A copy over the bus runs beside the kernels when it is asked for in time and from pinned memory. Otherwise
the GPU computes nothing meanwhile.

## How to fix

Copy the next batch while this one is trained on: `tf.data.experimental.prefetch_to_device` as the last
transformation. Send narrower types (uint8 images, cast on the device). Keep what is the same in each step
on the device, as a `tf.Variable` or a constant made once.

## Holds for

NVIDIA and AMD GPUs, TensorFlow 2.3 and later, with the GPU's work in the trace; the kind of memory since
TensorFlow 2.6 with CUDA.

## Sources

- [Optimize TensorFlow GPU performance with the TensorFlow Profiler](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [tf.data.experimental.prefetch_to_device](https://www.tensorflow.org/api_docs/python/tf/data/experimental/prefetch_to_device)
- [CUDA C++ Best Practices Guide](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html)
"""

from dataclasses import dataclass

from tfdoctor.facts.gpu.transfers import D2H, H2D, PAGEABLE, UNKNOWN, Transfer, Transfers
from tfdoctor.facts.steps.steady_steps import STEP, SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import Quantity, bandwidth, count, ms, nbytes, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(0.02, "of the step in which copies run and kernels do not", most=1.0)


LIMITS = Limits()


def check(
    transfers: Transfers, steady: SteadySteps, breakdown: Breakdown, limits: Limits = LIMITS
) -> Verdict:
    """Weigh the copies that nothing hides."""
    if steady.unit != STEP:
        return NotApplicable(reason=steady.why_no_steps)
    copies = [one for one in (transfers[H2D], transfers[D2H]) if one.count]
    exposed = sum(one.exposed_ms for one in copies)
    share = exposed / breakdown.step_ms if breakdown.step_ms else 0.0
    measure = Measure("of the step in copies beside no kernel", ratio(share), ratio(limits.share))
    if share < limits.share:
        said = f"Copies between host and GPU take {milliseconds(exposed)} per step beside no kernel"
        return Healthy(summary=said, evidence=(measure,))
    worst = max(copies, key=lambda one: one.exposed_ms)
    columns = ("copies", "per step", "bytes", "take", "beside no kernel", "rate", "host memory")
    return Finding(
        summary=f"Copies {worst.direction} take {milliseconds(worst.exposed_ms)} per step while no kernel runs"
        + (", from pageable memory" if worst.host_memory == PAGEABLE else ""),
        evidence=(measure, Table(columns, tuple(_row(one) for one in copies))),
        remedies=_remedies(worst),
        effects=tuple(
            Effect(Stage.TRANSFER, 0.0, one.direction, ms(one.exposed_ms), bound=Bound.AT_MOST)
            for one in copies
        ),
    )


def _row(one: Transfer) -> tuple[str | Quantity, ...]:
    return (
        one.direction,
        count(one.count),
        "unknown" if one.nbytes is None else nbytes(one.nbytes),
        ms(one.ms),
        ms(one.exposed_ms),
        "unknown" if one.rate is None else bandwidth(one.rate),
        one.host_memory,
    )


def _remedies(worst: Transfer) -> tuple[Remedy, ...]:
    if worst.direction == D2H:
        return (Remedy("Keep what the step computes on the GPU; read it every 100 steps", READ),)
    return (
        Remedy("Copy the next batch while this one is trained on", PREFETCH),
        Remedy("Send narrower types, and cast on the GPU", NARROW),
    )


PREFETCH = """\
dataset = dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))  # the last transformation"""

NARROW = """\
# uint8 images are a quarter of float32's bytes; the model's first layer casts and scales
inputs = keras.Input((224, 224, 3), dtype="uint8")
x = keras.layers.Rescaling(1 / 255)(inputs)"""

READ = """\
if step % 100 == 0:
    print(float(loss))"""


def sick() -> Verdict:
    """A batch of 100 MB is copied for 25 of 200 ms, from pageable memory."""
    return check(*_example(25.0))


def healthy() -> Verdict:
    """The same copy, hidden behind kernels."""
    return check(*_example(0.1))


def _example(exposed: float) -> tuple[Transfers, SteadySteps, Breakdown]:
    copy = Transfer(H2D, 1.0, 25.0, exposed, 1e8, 4e9, {PAGEABLE: 1e8, UNKNOWN: 0.0})
    step = Breakdown.of(transfer=exposed, device=175.0)
    return Transfers((copy,)), SteadySteps.of(Steps.uniform(10, step.step_ms)), step
