"""The run died for lack of memory.

## What it checks

How the run ended: by a `MemoryError`, by TensorFlow's `ResourceExhaustedError`, or by the kernel, which kills the
process that takes the last memory. Reported are the phase and the line, the tensor that did not fit, the peak of
the memory and its limit.

## Why it matters

What the run did since its last checkpoint is lost, and the next try ends in the same way.

## How to fix

On the device: a smaller batch, several small batches for one update (gradient accumulation), and a 16-bit policy,
which halves the activations. In the host's memory: read files and convert arrays in batches with tf.data instead of
one array, keep `uint8` and `float32` instead of `float64`, and class numbers with a sparse loss instead of one-hot
rows. In `predict` and `evaluate`: a smaller `batch_size`, and a loop that writes results to a file. Where models
are built one after another: `keras.backend.clear_session()` before each. Where the kernel killed the run, also
`options.autotune.ram_budget`: tf.data's tuner takes up to half of the machine's free memory for its buffers,
whatever the limit of a container.

## Holds for

Runs recorded as a whole by `tfdoctor profile`. A kill is told as one for lack of memory only where the kernel
counts it for the run's cgroup. A process that catches the error and goes on is not reported.

## Sources

- [Use a GPU: limiting GPU memory growth](https://www.tensorflow.org/guide/gpu)
- [Mixed precision](https://www.tensorflow.org/guide/mixed_precision)
- [Memory controller: events, Linux](https://docs.kernel.org/admin-guide/cgroup-v2.html)
- [tf.data.experimental.AutotuneOptions: ram_budget](https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutotuneOptions)
- [TensorFlow issue 33516: AUTOTUNE takes all memory](https://github.com/tensorflow/tensorflow/issues/33516)
- [SparseCategoricalCrossentropy](https://www.tensorflow.org/api_docs/python/tf/keras/losses/SparseCategoricalCrossentropy)
"""

from collections.abc import Iterator
from math import prod

from tfdoctor.diagnosis.rule import Topic
from tfdoctor.facts.growth.filling_memory import MemoryTrends
from tfdoctor.facts.input.tuned_buffers import TunedBuffers
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_ending import EndKind, RunEnding
from tfdoctor.facts.phases.run_phases import RunLine, RunPhases
from tfdoctor.facts.run.program import Program
from tfdoctor.rules.out_of_memory.remedies import Circumstances, remedies
from tfdoctor.terms.humanize import location, quantity
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import nbytes
from tfdoctor.terms.verdict import (
    Concern,
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    RunFailure,
    Severity,
    Table,
    Verdict,
)

TOPIC = Topic.RUN
SINCE = "0.2.0"

BY_HAND = "a smaller batch or other data change the training"

ENDED = {EndKind.EXIT: "by itself", EndKind.EXCEPTION: "by an exception", EndKind.INTERRUPT: "by an interrupt"}
"""How runs end that had enough memory."""

WIDTHS = {"double": 8, "float64": 8, "int64": 8, "complex64": 8, "float": 4, "float32": 4, "int32": 4, "half": 2,
          "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "bool": 1}  # fmt: skip
"""Bytes of an element, by the names of NumPy and of TensorFlow's messages."""


def check(
    ending: RunEnding,
    phases: RunPhases | None,
    calls: RunCalls | None,
    memory: MemoryTrends | None,
    program: Program | None,
    tuned: TunedBuffers | None,
) -> Verdict:
    """Report the end of the run, if it was for lack of memory."""
    if ending.kind is EndKind.OUT_OF_MEMORY:
        buffers = tuned if ending.killed_by_kernel else None  # the host's memory, and no single tensor
        return Finding(
            summary=_summary(ending),
            evidence=(*_evidence(ending, phases), *(buffers.evidence if buffers else ())),
            remedies=(
                *remedies(ending, _fit(ending, phases, calls, memory, program)),
                *((buffers.remedy,) if buffers else ()),
            ),
            severity=Severity.CRITICAL,
            concern=Concern.RUN,
            failure=RunFailure.HAPPENED,
        )
    if ending.kind is EndKind.RUNNING:
        return NotApplicable(reason="the end of the run was not recorded")
    if ending.kind is EndKind.KILLED:
        return NotApplicable(reason="a signal killed the run, and the kernel counted no kill for lack of memory")
    summary = f"The run ended {ENDED[ending.kind]}, not for lack of memory"
    if ending.peak_bytes:
        of = f" of {quantity(nbytes(ending.limit_bytes))}" if ending.limit_bytes else ""
        summary += f"; its peak was {quantity(nbytes(ending.peak_bytes))}{of}"
    return Healthy(summary=summary, evidence=_peaks(ending), concern=Concern.RUN)


def _fit(
    ending: RunEnding,
    phases: RunPhases | None,
    calls: RunCalls | None,
    memory: MemoryTrends | None,
    program: Program | None,
) -> Circumstances:
    """Gather what decides which change fits.

    Memory was filled by what grew, unless one tensor would never have fitted.
    """
    at, wanted = ending.at, bytes_wanted(ending)
    lines = phases.lines if phases and at else ()
    made = [call.models or 0 for call in calls.calls] if calls else []
    too_large = wanted and ending.limit_bytes and wanted > ending.limit_bytes
    trends = memory.memories if memory and not too_large else ()
    return Circumstances(
        batch=program.batch_size if program else None,
        calls=frozenset(line.calls for line in lines if line.at == at and line.calls),
        models=max(made, default=0),
        grew=any(one.trend.grows and one.grown >= GREW * one.trend.last for one in trends),
    )


GREW = 0.3
"""Share of the last level of memory that grew in the run from which on growth is a reason, beside the tensor."""


def _summary(ending: RunEnding) -> str:
    by_kernel = "The kernel killed the run for lack of memory"
    who = by_kernel if ending.killed_by_kernel else "The run ran out of memory"
    device = f" of {ending.allocator}" if ending.allocator else ""
    phase = f" during {DURING.get(ending.phase, ending.phase)}" if ending.phase else ""
    at = f" at {location(ending.at)}" if ending.at else ""
    wanted = bytes_wanted(ending)
    if not wanted:
        return f"{who}{device}{phase}{at}"
    shape = f" of shape {list(ending.shape)}" if ending.shape else ""
    return f"{who}{device}{phase}{at}, which asked for {quantity(nbytes(wanted))}{shape}"


DURING = {
    Phase.START: "the start",
    Phase.STEPS: "the training steps",
    Phase.BUILDING: "the building of the model",
    Phase.BOUNDARIES: "the boundary of an epoch",
    Phase.END: "the end of the run",
    Phase.UNNAMED: "a part of the run without a name",
}
"""Phases as the object of "during"; the others are called by their names."""


def _evidence(ending: RunEnding, phases: RunPhases | None) -> Iterator[Evidence]:
    """Yield sizes, and where it ended: without a line, the one that ran most in that phase may be it."""
    if wanted := bytes_wanted(ending):
        yield Measure("memory asked for last", nbytes(wanted))
    yield from _peaks(ending)
    if ending.at:
        rows = ((ending.at, str(ending.phase or "unknown"), ending.error or "killed"),)
        yield Table(("line", "phase", "error"), rows)
    elif phases and ending.phase:
        lines = [line for line in phases.at(ending.phase) if line.at and line.sure]
        if lines:
            yield Table.of(
                lines[:1],
                ("line with most time of the phase", lambda line: line.at),
                ("phase", lambda line: str(line.phase)),
                ("error", lambda _: "not known"),
            )


def bytes_wanted(ending: RunEnding) -> float | None:
    """Return what was asked for: as the message says, else by the tensor's shape and type."""
    if ending.wanted_bytes:
        return ending.wanted_bytes
    width = WIDTHS.get(ending.dtype)
    return float(prod(ending.shape) * width) if ending.shape and width else None


def _peaks(ending: RunEnding) -> tuple[Measure, ...]:
    values = {
        "peak of the process (RSS)": ending.peak_bytes,
        "limit of the memory": ending.limit_bytes,
        "peak of the accelerator": ending.device_peak_bytes,
    }
    return tuple(Measure(label, nbytes(value)) for label, value in values.items() if value)


GPU_FULL = RunEnding(
    kind=EndKind.OUT_OF_MEMORY, error="ResourceExhaustedError", at=Location("train.py", 52), phase=Phase.STEPS,
    shape=(512, 64, 224, 224), dtype="float", allocator="GPU_0_bfc", peak_bytes=3.1e9, limit_bytes=64e9,
    device_peak_bytes=15.2e9,
)  # fmt: skip


def example(
    ending: RunEnding = GPU_FULL,
    *lines: RunLine,
    calls: RunCalls | None = None,
    memory: MemoryTrends | None = None,
    tuned: TunedBuffers | None = None,
) -> Verdict:
    """The activations of a batch of 512 do not fit on the GPU."""
    phases = RunPhases.divided(60e3, {}, *lines) if lines else None
    return check(ending, phases, calls, memory, None, tuned)


sick = example


def healthy() -> Verdict:
    """The run ends by itself, with a tenth of the memory."""
    return example(RunEnding(kind=EndKind.EXIT, peak_bytes=3.1e9, limit_bytes=32e9))
