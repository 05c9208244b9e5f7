"""The GPU waits for operations on the host.

## What it checks

On a GPU: copies of a tensor to the host that are followed, in the same step, by a copy back of what an operation
of the host made, while the GPU starts no kernel. The time of both copies and of the wait between them is counted
where no kernel runs.

## Why it matters

TensorFlow runs an operation on the host where the GPU has no kernel for it (strings, some sparse and image
operations, some types), where `tf.device("/CPU:0")` asks for it, and where it is Python (`tf.py_function`,
`tf.numpy_function`). In the middle of a step, everything behind it waits: for the copy there, for the operation
on a slow processor, and for the copy back.

## How to fix

Move the operation into the `tf.data` pipeline, if it depends on the batch alone: there it runs while the GPU
computes. Else replace it with operations that have a GPU kernel (`tf.debugging.set_log_device_placement(True)`
shows where each one runs), change its type (many operations on integers run on the host), or remove `tf.device`.
Metrics that need Python belong into a callback.

## Holds for

NVIDIA GPUs, TensorFlow 2.3 and later, where the trace names the tensors that are copied, and for steps that XLA
did not compile. Where the last operation on the host is too short to be recorded, the wait is missed. The saving
is an upper bound: the operation may take time on the GPU. From published threads: the rule has not been seen at
work on such a program.

## Sources

- [Use a GPU, TensorFlow guide: logging device placement](https://www.tensorflow.org/guide/gpu#logging_device_placement)
- [Optimize GPU performance, TensorFlow guide](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [TensorFlow issue 40748](https://github.com/tensorflow/tensorflow/issues/40748) and
  [Keras pull request 5198](https://github.com/keras-team/keras/pull/5198): operations without a GPU kernel
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import figures_per_step
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.gpu.detours import Detour, Detours
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Effect, Finding, Healthy, Location, Measure, Remedy, Stage, Table, Verdict

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
PRECONDITIONS = (figures_per_step,)
BY_HAND = "whether the operation may move into the pipeline is not in the file"

PYTHON = frozenset(["PyFunc", "PyFuncStateless", "EagerPyFunc"])
"""Types of operations that call Python."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which waits are reported."""

    share: float = share_limit(
        0.02, "Smallest share of the step in which the GPU waits for operations on the host; steps vary by as much"
    )


def check(detours: Detours, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the copies and the waits."""
    if not detours.rows:
        return Healthy(summary="No operation on the host lies between two copies of a step")
    total = sum(row.ms for row in detours.rows)
    share = total / breakdown.step_ms if breakdown.step_ms else 0.0
    number = counted(len(detours.rows), "operation")
    summary = f"The GPU waits {milliseconds(total)} per step for {number} on the host"
    evidence = (
        Measure.share("share of the step in these waits, with their copies", share, limits.share),
        Measure("copies to the host and back", ms(sum(row.copies_ms for row in detours.rows))),
        Measure("wait between the copies", ms(sum(row.waiting_ms for row in detours.rows))),
        _table(detours.rows),
    )
    if share < limits.share:
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=f"{summary} ({percent(share)})",
        evidence=evidence,
        remedies=(_remedy(detours.rows[0]),),
        effects=tuple(effect for row in detours.rows for effect in _effects(row)),
    )


def _table(rows: tuple[Detour, ...]) -> Table:
    return Table.of(
        rows,
        ("operation", lambda row: row.name),
        ("type", lambda row: row.type),
        ("your line", lambda row: row.at),
        ("calls per step", lambda row: count(row.calls)),
        ("time of the copies", lambda row: ms(row.copies_ms)),
        ("wait between them", lambda row: ms(row.waiting_ms)),
        most=10,
    )


def _effects(row: Detour) -> tuple[Effect, ...]:
    times = {Stage.TRANSFER: row.copies_ms, Stage.HOST: row.waiting_ms}
    return Effect.of_stages(times, row.name, bound=Bound.AT_MOST)


def _remedy(row: Detour) -> Remedy:
    if row.type in PYTHON:
        return Remedy("Move the Python function into the pipeline, or out of the step", PIPELINE, row.at)
    if "String" in row.type:
        return Remedy("Move the operation on strings into the pipeline", PIPELINE, row.at)
    return Remedy("Run the operation on the GPU, or in the pipeline", PLACED, row.at)


PIPELINE = """\
dataset = dataset.map(function, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"""

PLACED = f"""\
tf.debugging.set_log_device_placement(True)  # which operations run on /CPU:0
{PIPELINE}"""


def example(
    kind: str = "EagerPyFunc", copies_ms: float = 0.4, waiting_ms: float = 3.6, step_ms: float = 20.0
) -> Verdict:
    """A py_function in the model takes 4 of 20 ms, with its copies."""
    row = Detour("model/smooth/EagerPyFunc", kind, 1.0, copies_ms, waiting_ms, Location("train.py", 9))
    step = Breakdown.of(transfer=copies_ms, host=waiting_ms, device=step_ms - copies_ms - waiting_ms)
    return check(Detours((row,)), step)


sick = example


def healthy() -> Verdict:
    """All operations of the step run on the GPU."""
    return check(Detours(()), Breakdown.of(device=16.0))
