"""What making batches in the training loop takes."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.stack_samples import SampledLine, StackSamples
from tfdoctor.rules.python_input.remedies import fewer, in_place
from tfdoctor.terms import text
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Cell, Location, Remedy, Stage, Table

TAKING_MS = 0.07
"""What `next()` of a tf.data iterator takes of a step whose batch is ready: 0.07 ms for one tensor, 0.09 ms for
five (TensorFlow 2.21, an AMD EPYC, 2026-11-24). Passing one array of 25 kB instead of a tensor took the call 0.01
ms more, five small arrays 0.08 ms."""


@dataclass(frozen=True, slots=True)
class Making:
    """What making batches in the training loop takes, in ms per step: of lines, and of converting new arrays.

    ``times`` divides the sum among the stages of the step.
    """

    times: Mapping[Stage, float]
    lines: tuple[tuple[Location | None, str, float], ...]  # with what each calls, the longest first
    converting_ms: float
    remedy: Remedy
    taking_ms: float  # what it takes to get a batch from elsewhere
    by_model: bool = False  # the loop's own model decides what is in a batch: no pipeline can make it

    @classmethod
    def of(
        cls,
        samples: StackSamples | None,
        body: LoopBody | None,
        conversions: Conversions | None,
        least_samples: float,
    ) -> Self:
        """Divide the loop's own time by the samples in lines that make batches, if they are enough."""
        makers = samples.makers if samples and body else ()
        by_model = bool(samples and samples.models_at)
        if by_model and makers:  # the line that takes most, alone
            at, *_ = _by_line(makers, 0.0)[0]
            makers = tuple(line for line in makers if line.at == at)
            least_samples = max(least_samples, ALONE)
        if sum(line.seen for line in makers) < least_samples:
            makers = ()
        arrays = conversions.arrays if conversions and not by_model else ()
        new = [array for array in arrays if array.same is False]
        share = samples.share(makers) if samples else 0.0
        host_ms, between_ms = (body.host_ms, body.between_ms) if body else (0.0, 0.0)
        times = {
            Stage.HOST: host_ms * share + sum(array.host_ms for array in new),
            Stage.BETWEEN: between_ms * share + sum(array.between_ms for array in new),
        }
        lines = _by_line(makers, (host_ms + between_ms) * share)
        inside = _in_function(makers, samples.function if samples else "")
        if lines and lines[0][1] in PERMUTING and 2 * lines[0][2] >= (host_ms + between_ms) * share:
            inside = Remedy(DRAW, GENERATOR)
        elif by_model and lines:
            inside = inside or Remedy(text.capitalized(fewer(lines[0][1])))
        code = "\n".join((*in_place((calls, line_ms) for _, calls, line_ms in lines), PIPELINE))
        at = conversions.at if conversions else None
        remedy = inside or Remedy("Make the batches in a tf.data pipeline", code, at)
        at = lines[0][0] if lines else remedy.at
        converting_ms, taking_ms = sum(array.ms for array in new), 0.0 if inside else TAKING_MS
        return cls(times, lines, converting_ms, replace(remedy, at=at), taking_ms, by_model)

    @property
    def total_ms(self) -> float:
        """The time of all of it."""
        return sum(self.times.values())

    @property
    def remaining(self) -> float:
        """The share of it that another way of making batches takes at least, 0 to 1."""
        return min(1.0, self.taking_ms / self.total_ms) if self.total_ms else 1.0

    @property
    def table(self) -> Table:
        """The time of each line, and of the conversions."""
        rows: list[tuple[Cell, ...]] = [
            (at or "unknown", calls or "-", ms(time_ms)) for at, calls, time_ms in self.lines[:MOST_LINES]
        ]
        if others := self.lines[MOST_LINES:]:
            rows.append((OTHERS, "-", ms(sum(time_ms for *_, time_ms in others))))
        if self.converting_ms:
            rows.append(("conversion of new arrays to tensors", "-", ms(self.converting_ms)))
        return Table(("your line", "calls", "time per step, estimated"), tuple(rows))


ALONE = 10
"""Stack samples in a line that is named without the others: with 10 its time is uncertain by a third."""


def _by_line(makers: Sequence[SampledLine], all_ms: float) -> tuple[tuple[Location | None, str, float], ...]:
    """Divide the time among lines; a line is sampled in several places, of which the first is the most frequent."""
    seen: Counter[Location | None] = Counter()
    calls: dict[Location | None, str] = {}
    for maker in makers:
        seen[maker.at] += maker.seen
        calls.setdefault(maker.at, maker.calls)
    return tuple((at, calls[at], all_ms * n / seen.total()) for at, n in seen.most_common())


def _in_function(makers: Sequence[SampledLine], function: str) -> Remedy | None:
    """Return what to do where TensorFlow's operations, called one by one, make the batch; None for other Python."""
    operations = Counter[str]()
    for maker in makers:
        if OPERATION.match(maker.calls):
            operations[maker.calls] += maker.seen
    if 2 * operations.total() <= sum(maker.seen for maker in makers):
        return None
    name = operations.most_common(1)[0][0].replace("tensorflow.", "tf.", 1)
    code = INSIDE.format(function=function or "train_step", name=name)
    return Remedy(f"Call {name} inside {function or 'the tf.function'}", code)


PERMUTING = ("numpy.random.choice", "numpy.random.permutation")
"""Without replacement they permute all n, also for k of them: 1.8 ms for 48 of 80,000, where a Generator takes 0.01
ms (NumPy 2.4 on an AMD EPYC, 2026-11-29)."""

DRAW = "Where it draws some of many without replacement, draw them from a numpy.random.Generator"

GENERATOR = """\
rng = np.random.default_rng(seed)  # once, before the loop
index = rng.choice(n, k, replace=False)  # or rng.integers(n, size=k), where an example may come twice"""


OPERATION = re.compile(r"tensorflow\.(?!python\.|(?:constant|convert_to_tensor)$)")
"""An operation of TensorFlow's API, but none that makes a tensor of an array: a tf.function does that, too."""


MOST_LINES = 8
"""Lines that a finding shows."""


OTHERS = "other lines"


INSIDE = """\
@tf.function
def {function}():
    x = {name}(...)  # in the graph: no call from Python for each operation
    ..."""


PIPELINE = """\
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).repeat().batch(batch_size)
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
for features, target in dataset:
    loss = train_step(features, target)  # prepare() in TensorFlow operations, on whole batches"""
