"""Checks for debugging run in every step.

## What it checks

The time of operations that only look at values: `CheckNumericsV2` and `DebugNumericSummaryV2` of
`tf.debugging.enable_check_numerics()`, `tf.debugging.check_numerics`, and those in the scope of
`tf.debugging.assert_*`. Added are Python's time in the checks of operations that it runs one by one, and the
part of the host's time that starting these operations takes.

## Why it matters

`enable_check_numerics()` adds two operations behind each floating-point result, in the forward pass, in the
gradient and in the optimizer. Each reads the whole tensor again, keeps it alive, and must be scheduled. For
operations that Python runs one by one, such as the call of a training function, it also writes the inputs into
a message beforehand.

## How to fix

Remove the call once the cause of a NaN is found, or make it depend on a flag. A check of the loss every hundred
steps, or `tf.keras.callbacks.TerminateOnNaN`, finds that something is wrong; the checks are needed only to find
where. Assertions on shapes and types cost nothing where the shapes are known when the function is traced; those
on values do.

## Holds for

TensorFlow 2.3 and later, on all devices. In a step of 18 ms with 456 checks, half of the step was saved
(TensorFlow 2.21 on two cores of a Xeon). The checks also keep operations from writing their result into their
input; that is not counted.

## Sources

- [TensorFlow, tf.debugging.enable_check_numerics](https://www.tensorflow.org/api_docs/python/tf/debugging/enable_check_numerics)
- [Keras, TerminateOnNaN](https://keras.io/api/callbacks/terminate_on_nan/)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import found
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.debug_checks.checking_operations import DebugChecks
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Location, Measure, Remedy, Stage, StepWork, Verdict

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
PRECONDITIONS = (found(DebugChecks, lambda checks: checks.rows, "No operation of the step only checks values"),)
BY_HAND = "whether the checks in the training function are still needed is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which checks are reported."""

    share: float = share_limit(
        0.02,
        "Smallest share of the step in checks that is reported; a few assertions on small tensors take less "
        "and are often wanted",
    )


def check(checks: DebugChecks, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the time of the checks and of the host for them."""
    taken = checks.ms + checks.host_ms
    share = taken / breakdown.step_ms if breakdown.step_ms else 0.0
    number = counted(round(checks.calls), "operation")
    summary = f"{number} that only check values take {milliseconds(taken)}"
    evidence = (
        Measure.share("share of the step in checks of values", share, limits.share),
        Measure("operations per step that check values", count(checks.calls)),
        Measure("time in operations that check values, per step", ms(checks.ms)),
        Measure("time of Python in checks, per step", ms(checks.python_ms)),
        Measure("time of the host to start checks in graphs, per step", ms(checks.starting_ms)),
    )
    if share < limits.share:
        return Healthy(summary=f"{summary} of each step", evidence=evidence)
    at = next((row.at for row in checks.rows if row.at), None)
    remedy = Remedy("Remove the checks from the training function", RARELY, at)
    if checks.everywhere:
        action = "Remove tf.debugging.enable_check_numerics()"
        remedy = Remedy(action, FLAG, checks.at, "debugging-off")
    effects = [row.scaled(0.0) for row in checks.rows if row.ms]
    if checks.host_ms:
        effects.append(Effect(Stage.HOST, 0.0, StepWork.CHECKS, ms(checks.host_ms)))
    return Finding(
        summary=f"{summary} per step ({percent(share)})",
        evidence=evidence,
        remedies=(remedy,),
        effects=tuple(effects),
    )


FLAG = """\
if args.debug:  # only while you look for the operation that makes the first NaN
    tf.debugging.enable_check_numerics()"""

RARELY = """\
# after the training function, instead of checks within it
if step % 100 == 0 and not np.isfinite(float(loss)):
    raise FloatingPointError(f"the loss is {loss} in step {step}")"""


def example(
    *rows: OperationTime,
    calls: float = 456.0,
    host_ms: float | None = None,
    step: Breakdown | None = None,
    everywhere: bool = True,
) -> Verdict:
    """The checks of all tensors take 3 of 13 ms of compute, and half of the host's time."""
    kind = "CheckNumericsV2"
    checking = rows or (OperationTime(name=kind, type=kind, ms=0.007 * calls, calls=calls),)
    starting_ms = 6.0 * calls / (calls + 500) if host_ms is None else host_ms
    at = Location("train.py", 5)
    checks = DebugChecks(checking, 0.0, starting_ms, everywhere=everywhere, at=at)
    return check(checks, step or Breakdown.of(host=6.0, device=checks.ms + 10.0))


sick = example


def healthy() -> Verdict:
    """A single assertion takes 7 microseconds."""
    return example(calls=1.0)
