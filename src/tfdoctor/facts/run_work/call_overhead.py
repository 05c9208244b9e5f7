"""What of the time of evaluate, predict and adapt is spent per call or per batch, not per example."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunLine
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Bound, Location, Recurrence

FIXED_MS = {"predict": 35.0, "evaluate": 45.0}
"""What a call takes besides its batches, in ms: Keras 3.15 on a CPU, one row of a small model, 31 to 45 ms and
42 to 49 ms (60 calls of each were measured)."""

MOSTLY_FIXED = 3.0
"""A call that takes up to so many times its fixed time computes little: machines differ by a factor of two."""

MOST_FIXED = 10.0
"""A call that takes more than so many times its fixed time spends less than a tenth on it."""

LEAST_SAMPLES = 20
"""Stack samples of calls from which on they tell what is executed: with 20 a half is uncertain by 11 points."""

LEAST_CALLS = 20
"""Calls at one line that are a loop over examples or batches; ensembles and folds have fewer."""

FEW_ROWS = 64
"""Examples of a call that one or two usual batches hold."""

SINGLE_ROWS = 4
"""Examples of a batch that are single ones: a batch of 32 takes hardly longer."""

ON_BATCH_MS = 5.0
"""Longest call of predict_on_batch on single examples that mostly starts operations: 0.2 to 0.6 ms measured."""

USUAL_ROWS, LARGE_ROWS = 32, 512
"""Examples of a batch: what Keras takes by default, and one that starts operations 16 times less often."""

SMALL_BATCH_MS, SINGLE_BATCH_MS = 1.5, 5.0
"""Longest batch of 32 and of single examples that mostly starts operations: 0.45 ms were measured per batch."""

ADAPT_BATCH_MS = 3.0
"""Longest batch of adapt that mostly starts operations: of Keras 3.15's layers, single examples took 0.08 to 1.3 ms
on two cores; longer ones are mostly other work, such as reading and decoding in the dataset."""

ADAPT_ROWS = 4096
"""Examples of a batch that are advised for adapt."""

LEAST_BATCHES = 200
"""Batches of a call from which on their size matters."""

ONE_PER_STEP = (0.9, 1.1)
"""Calls per training step that are one in each step: slow-call reports them, from the traced steps."""


class OverheadKind(StrEnum):
    """What the time is spent per."""

    CALL = "call"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class CallOverhead:
    """Calls of a line of which ``of_ms`` takes ``left`` times as long in larger calls or batches."""

    call: MadeCall
    kind: OverheadKind
    of_ms: float
    left: float
    bound: Bound

    @property
    def at(self) -> Location:
        """The line of the calls."""
        return self.call.at or Location("", 0)

    @property
    def saved_ms(self) -> float:
        """What larger calls or batches save of the run."""
        return self.of_ms * (1.0 - self.left)


def call_overheads(
    calls: RunCalls, kind: RunCall, lines: Iterable[RunLine] = (), steps: int = 0
) -> tuple[CallOverhead, ...]:
    """Return the calls of a kind that are too small, those that lose most first.

    Sampled lines of the calls' phase tell how much of a call TensorFlow executes operations. Left out are calls
    made in each of so many training steps.
    """
    timed = [line for line in lines if line.exact]
    found = [_overhead(call, calls.epochs, steps, _executing(call, timed)) for call in calls.of(kind) if call.at]
    known = [overhead for overhead in found if overhead is not None]
    return tuple(sorted(known, key=lambda overhead: -overhead.saved_ms))


def in_each_epoch(calls: Iterable[MadeCall], epochs: int) -> tuple[MadeCall, ...]:
    """Return the calls that are made about once in each of the epochs, within fit or in a loop of the user's."""
    return tuple(call for call in calls if epochs > 1 and call.at and 0.5 * epochs <= call.count <= 2.0 * epochs)


def function_name(call: MadeCall) -> str:
    """Return the function's own name: "predict" of "Model.predict"."""
    return call.name.rpartition(".")[2]


def _executing(call: MadeCall, lines: Iterable[RunLine]) -> float | None:
    """Return the share of calls in which TensorFlow executes operations; None of too few samples."""
    own = [line for line in lines if line.at == call.at]
    time_ms = sum(line.ms for line in own)
    if sum(line.samples for line in own) < LEAST_SAMPLES or not time_ms:
        return None
    return sum(line.executes_ms for line in own) / time_ms


def _overhead(call: MadeCall, epochs: int, steps: int, executing: float | None) -> CallOverhead | None:
    """Return what a call loses: per call where a loop makes it for one part of the data after another."""
    if call.call is RunCall.ADAPT:
        return _of_adapt(call)
    low, high = ONE_PER_STEP
    per_step = call.count / steps if steps and not call.after_training else 0.0
    often = call.count >= LEAST_CALLS and call.count > 2 * epochs  # not once per epoch
    again = call.looped or call.within is not RunCall.SCRIPT  # such as a callback's loop
    loop = again and often and not low <= per_step <= high
    return (_per_call(call, executing) if loop else None) or _per_batch(call)


def _per_call(call: MadeCall, executing: float | None) -> CallOverhead | None:
    fixed_ms, each_ms = FIXED_MS.get(function_name(call)), call.each_ms
    if fixed_ms is None:
        return _of_single_rows(call)
    if executing is not None:
        left = max(executing, 1.0 / call.count)
        return CallOverhead(call, OverheadKind.CALL, call.ms, left, Bound.EXPECTED)
    if each_ms > MOST_FIXED * fixed_ms:
        return None
    small = call.examples is None or call.examples <= FEW_ROWS
    if small and each_ms <= MOSTLY_FIXED * fixed_ms:
        return CallOverhead(call, OverheadKind.CALL, call.ms, 1.0 / call.count, Bound.AT_MOST)
    left = max(0.0, 1.0 - fixed_ms / each_ms)
    return CallOverhead(call, OverheadKind.CALL, call.ms, left, Bound.EXPECTED)


def _of_single_rows(call: MadeCall) -> CallOverhead | None:
    """Return what calls of predict_on_batch and the like on single examples lose."""
    rows = call.examples
    if rows is None or rows > SINGLE_ROWS or call.each_ms > ON_BATCH_MS:
        return None
    return CallOverhead(call, OverheadKind.CALL, call.ms, max(1.0, rows) / USUAL_ROWS, Bound.AT_MOST)


def _per_batch(call: MadeCall) -> CallOverhead | None:
    fixed_ms = FIXED_MS.get(function_name(call))
    if fixed_ms is None or not call.batches or not call.examples or call.batches < LEAST_BATCHES:
        return None
    batches_ms = max(0.0, call.each_ms - fixed_ms)
    each_ms, rows = batches_ms / call.batches, call.examples / call.batches
    if rows <= SINGLE_ROWS and each_ms <= SINGLE_BATCH_MS:
        left = rows / USUAL_ROWS
    elif rows <= FEW_ROWS and each_ms <= SMALL_BATCH_MS:
        left = rows / LARGE_ROWS
    else:
        return None
    return CallOverhead(call, OverheadKind.BATCH, batches_ms * call.count, left, Bound.AT_MOST)


def _of_adapt(call: MadeCall) -> CallOverhead | None:
    """Return what adapt loses on batches of few examples: each is the same few operations."""
    batches, rows = call.batches or 0.0, rows_per_batch(call)
    if batches < LEAST_BATCHES or rows is None or rows > SINGLE_ROWS:
        return None
    if call.each_ms > ADAPT_BATCH_MS * batches:
        return None
    left = max(rows / ADAPT_ROWS, 1.0 / batches)
    return CallOverhead(call, OverheadKind.BATCH, call.ms, left, Bound.AT_MOST)


def rows_per_batch(call: MadeCall) -> float | None:
    """Return the examples of a batch; None where the recording does not have them."""
    return call.examples / call.batches if call.examples and call.batches else None


def recurrence(call: MadeCall, calls: RunCalls) -> Recurrence:
    """Return whether a run of more epochs has more of a call: not of those before or after the training."""
    if call.before_training or call.after_training:
        return Recurrence.ONCE
    return Recurrence.PER_EPOCH if calls.epochs > 1 else Recurrence.PER_CALL
