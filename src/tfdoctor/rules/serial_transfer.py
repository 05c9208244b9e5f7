"""Copies between host and GPU do not overlap kernels.

## What it checks

How long copies from the host to the GPU, and back, take while no kernel of the GPU runs; their size, their
bandwidth, and whether the host's memory is pageable.

## Why it matters

A copy over the bus overlaps with kernels when it starts early enough and reads pinned memory. Otherwise the GPU
computes nothing during the copy.

## How to fix

Copy the next batch while the GPU trains on the current one: `tf.data.experimental.prefetch_to_device` as the last
transformation. Copy smaller data types (uint8 images, cast on the device). Keep data that is the same in each
step on the device, as a `tf.Variable` or as a constant that is created once.

`prefetch_to_device` overlaps only copies from pinned memory. Tensors that come straight from NumPy, as those of
`from_generator` in issue 43905, are in pageable memory: the rule shows which kind it was.

## Holds for

NVIDIA and AMD GPUs, TensorFlow 2.3 and later, with the GPU's work in the trace. The kind of memory is known
with CUDA, from TensorFlow 2.6 on.

## Sources

- [Optimize TensorFlow GPU performance with the TensorFlow Profiler](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [tf.data.experimental.prefetch_to_device](https://www.tensorflow.org/api_docs/python/tf/data/experimental/prefetch_to_device)
- [TensorFlow issue 43905: prefetch_to_device and pinned memory](https://github.com/tensorflow/tensorflow/issues/43905)
- [CUDA C++ Best Practices Guide](https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import figures_per_step
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.gpu.transfers import D2H, H2D, PAGEABLE, UNKNOWN, Transfer, Transfers
from tfdoctor.facts.run.framework import JAX, Framework
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import bandwidth, count, ms, nbytes
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Measure, Remedy, Stage, Table, Verdict

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
PRECONDITIONS = (figures_per_step,)
BY_HAND = "what a prefetch to the device may hold depends on the memory of the device"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(0.02, "Smallest share of the step that copies take while no kernel runs")


def check(transfers: Transfers, breakdown: Breakdown, framework: Framework, limits: Limits = Limits()) -> Verdict:
    """Compare the copies that no kernel hides with the step."""
    copies = [copy for copy in (transfers[H2D], transfers[D2H]) if copy.count]
    exposed_ms = sum(copy.exposed_ms for copy in copies)
    share = breakdown.share(exposed_ms)
    measure = Measure.share("share of the step copying while no kernel runs", share, limits.share)
    if share < limits.share:
        taken = f"{milliseconds(exposed_ms)} of {breakdown.each_step} while no kernel runs"
        summary = f"Copies between host and GPU take {taken}"
        return Healthy(summary=summary, evidence=(measure,))
    worst = max(copies, key=lambda copy: copy.exposed_ms)
    source = ", from pageable memory" if worst.host_memory == PAGEABLE else ""
    effects = (
        Effect(Stage.TRANSFER, 0.0, copy.direction, ms(copy.exposed_ms), bound=Bound.AT_MOST) for copy in copies
    )
    return Finding(
        summary=f"Copies from {worst.direction} take {milliseconds(worst.exposed_ms)} of {breakdown.each_step} "
        f"while no kernel runs{source}",
        evidence=(measure, _table(copies)),
        remedies=_remedies(worst, framework),
        effects=tuple(effects),
    )


def _table(copies: list[Transfer]) -> Table:
    return Table.of(
        copies,
        ("direction", lambda copy: copy.direction),
        ("copies per step", lambda copy: count(copy.count)),
        ("bytes per step", lambda copy: None if copy.nbytes is None else nbytes(copy.nbytes)),
        ("time per step", lambda copy: ms(copy.ms)),
        ("time while no kernel runs", lambda copy: ms(copy.exposed_ms)),
        ("bandwidth", lambda copy: None if copy.rate is None else bandwidth(copy.rate)),
        ("host memory", lambda copy: copy.host_memory),
    )


def _remedies(worst: Transfer, framework: Framework) -> tuple[Remedy, ...]:
    if worst.direction == D2H:
        return (Remedy("Keep results on the GPU and read them every 100 steps", READ),)
    ahead, smaller = PREFETCH, SMALLER
    if framework.foreign:
        ahead, smaller = (PUT if framework.name == JAX else ""), ""
    return (
        Remedy("Copy the next batch while the GPU trains on the current one", ahead),
        Remedy("Copy smaller data types and cast on the GPU", smaller),
    )


PREFETCH = """\
dataset = dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))  # the last transformation"""

PUT = """\
following = jax.device_put(next(batches))  # copies while the GPU computes
for _ in range(steps):
    batch, following = following, jax.device_put(next(batches))
    params, loss = train_step(params, batch)"""

SMALLER = """\
# uint8 images have a quarter of the bytes of float32; the model's first layer casts and scales
inputs = keras.Input(image_shape, dtype="uint8")  # in place of float32
x = keras.layers.Rescaling(1 / 255)(inputs)"""

READ = """\
if step % 100 == 0:
    print(float(loss))"""


def example(
    *copies: Transfer, exposed_ms: float = 25.0, device_ms: float = 175.0, framework: Framework = Framework()
) -> Verdict:
    """Copying a batch of 100 MB from pageable memory takes 25 of 200 ms."""
    copy = Transfer(H2D, 1.0, 25.0, exposed_ms, 1e8, 4e9, {PAGEABLE: 1e8, UNKNOWN: 0.0})
    step = Breakdown.of(transfer=exposed_ms, device=device_ms)
    return check(Transfers(copies or (copy,)), step, framework)


sick = example


def healthy() -> Verdict:
    """The same copy overlaps with kernels."""
    return example(exposed_ms=0.1)
