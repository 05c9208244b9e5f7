"""What making batches in the training loop takes."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.training_inputs import Conversions
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.stack_samples import StackSamples
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Cell, Location, Stage, Table

# What `next()` of a tf.data iterator takes of a step whose batch is ready: 0.07 ms for one tensor, 0.09 ms for five
# (TensorFlow 2.21, an AMD EPYC, 2026-11-24). Passing one array of 25 kB instead of a tensor took the call 0.01 ms
# more, five small arrays 0.08 ms.
TAKING_MS = 0.07
ALONE = 10  # Stack samples in a line that is named without the others: with 10 its time is uncertain by a third
# Without replacement they permute all n, also for k of them: 1.8 ms for 48 of 80,000, where a Generator takes 0.01
# ms (NumPy 2.4 on an AMD EPYC, 2026-11-29).
PERMUTING = ("numpy.random.choice", "numpy.random.permutation")
# An operation of TensorFlow's API, but none that makes a tensor of an array: a tf.function does that, too.
OPERATION = re.compile(r"tensorflow\.(?!python\.|(?:constant|convert_to_tensor)$)")
MOST_LINES = 8  # Lines that a finding shows

OTHERS = "other lines"


@dataclass(frozen=True, slots=True)
class Making:
    """What making batches in the training loop takes, in ms per step: of lines, and of converting new arrays.

    ``times`` divides the sum among the stages of the step; ``at`` is the line that takes most.
    """

    times: Mapping[Stage, float]
    lines: tuple[tuple[Location | None, str, float], ...]  # with what each calls, the longest first
    converting_ms: float
    at: Location | None
    by_model: bool = False  # the loop's own model decides what is in a batch: no pipeline can make it
    draws: bool = False  # half of it is one of ``PERMUTING``
    operation: str = ""  # of TensorFlow's, called one by one, which make most batches: "tf.random.uniform"

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
        seen: Counter[Location | None] = Counter()
        for maker in makers:
            seen[maker.at] += maker.seen
        if by_model and makers:  # the line that takes most, alone
            ((at, _),) = seen.most_common(1)
            makers, seen = tuple(line for line in makers if line.at == at), Counter({at: seen[at]})
            least_samples = max(least_samples, ALONE)
        if seen.total() < least_samples:
            makers = ()
        arrays = conversions.arrays if conversions and not by_model else ()
        new = [array for array in arrays if array.same is False]
        share = samples.share(makers) if samples else 0.0
        host_ms, between_ms = (body.host_ms, body.between_ms) if body else (0.0, 0.0)
        times = {
            Stage.HOST: host_ms * share + sum(array.host_ms for array in new),
            Stage.BETWEEN: between_ms * share + sum(array.between_ms for array in new),
        }
        # A line is sampled in several places, of which the first is the most frequent.
        calls = {maker.at: maker.main_call for maker in reversed(makers)}
        all_ms = (host_ms + between_ms) * share
        lines = tuple((at, calls[at], all_ms * n / seen.total()) for at, n in seen.most_common() if makers)
        operations = Counter[str]()
        for maker in makers:
            operations[maker.main_call] += maker.seen if OPERATION.match(maker.main_call) else 0
        mostly = 2 * operations.total() > seen.total() and bool(makers)
        operation = operations.most_common(1)[0][0].replace("tensorflow.", "tf.", 1) if mostly else ""
        draws = bool(lines) and lines[0][1] in PERMUTING and 2 * lines[0][2] >= all_ms
        at = lines[0][0] if lines else conversions.at if conversions else None
        return cls(times, lines, sum(array.ms for array in new), at, by_model, draws, operation)

    @property
    def total_ms(self) -> float:
        """The time of all of it."""
        return sum(self.times.values())

    @property
    def taking_ms(self) -> float:
        """What it takes to get a batch from elsewhere; 0 where it is still made here."""
        return 0.0 if self.draws or self.operation or (self.by_model and self.lines) else TAKING_MS

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
