"""What to change about a function that is retraced, by what changes from trace to trace."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.sequence_padding import bucketing, few_lengths
from tfdoctor.facts.phases.run_traces import TracedDefinition
from tfdoctor.facts.step_time.retracing import Retraced
from tfdoctor.terms.verdict import Location, Remedy


def for_change(function: Retraced, at: Location | None) -> Remedy:
    """Choose by what changes: a Python number, a shape, or something else."""
    if function.changed and all(NUMBER.fullmatch(value) for value in function.changed):
        action = f"Pass {function.name} a tensor instead of a Python number"
        return Remedy(action, TENSOR.format(function.name, "step"), at, "tensor-argument")
    given = GivenShapes.of(function.changed)
    if given is None:
        action = f"Find what changes in each call of {function.name} and keep it constant"
        return Remedy(action, ONCE, at)
    if not given.lengths:
        action = f"Give {function.name} batches of one shape, or leave the shape open"
        code = SHAPE.format(given.rows, given.signature, function.name)
        return Remedy(action, code, at, "reduce-retracing")
    action = f"Leave the input shape of {function.name} open, or pad the input to a few lengths"
    lengths = bucketing(few_lengths(given.lengths), fixed=True)
    return Remedy(action, OPEN.format(given.signature, function.name, lengths), at, "reduce-retracing")


@dataclass(frozen=True, slots=True)
class GivenShapes:
    """The shapes of a tensor that a function was given, each as its dimensions, and its type, "" if unknown."""

    shapes: tuple[tuple[str, ...], ...]
    dtype: str = ""

    @classmethod
    def of(cls, changed: Sequence[str]) -> Self | None:
        """Read them from the arguments of the traces; None where it is not the shape that changes."""
        matches = [SHAPED.match(value) for value in changed]
        found = [match for match in matches if match]
        shapes = tuple(tuple(match[1].split(", ")) for match in found)
        if len(found) < len(matches) or len(set(shapes)) < SEVERAL:
            return None
        return cls(shapes, found[0][2] or "")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The values of the first dimension behind the batch size that differs; () where none does."""
        behind = list(zip(*(shape[1:] for shape in self.shapes), strict=False))
        differing = next((values for values in behind if len(set(values)) > 1), ())
        return tuple(int(value) for value in differing if value.isdecimal())

    @property
    def rows(self) -> str:
        """The size of the largest batch, as code."""
        return str(max((int(shape[0]) for shape in self.shapes if shape[0].isdecimal()), default="batch_size"))

    @property
    def signature(self) -> str:
        """A signature for all of them, as code."""
        same = {len(shape) for shape in self.shapes}
        dimensions = [values[0] if len(set(values)) == 1 else "None" for values in zip(*self.shapes, strict=False)]
        shape = f"[{', '.join(dimensions)}]" if len(same) == 1 else "None"
        return f"tf.TensorSpec({', '.join(filter(None, (shape, self.dtype)))})"


def of_numbers(function: TracedDefinition) -> Remedy:
    """Pass tensors instead of the Python numbers that change, at the line that assigns or else passes them."""
    numbers = [one for one in function.numbers if not one.is_text]
    if not numbers:
        first = function.numbers[0]
        action = f"Call {function.name} with few different texts, or make a function for each of them"
        return Remedy(action, TEXT.format(function.name, first.name), first.at or function.at)
    first, several = numbers[0], len(numbers) > 1
    tensors = "), tf.constant(".join(one.name for one in numbers)
    code = TENSOR.format(function.name, tensors)
    what = "tensors instead of Python numbers" if several else "a tensor instead of a Python number"
    return Remedy(f"Pass {function.name} {what}", code, first.at or function.at, "tensor-argument")


SEVERAL = 2
"""Different shapes from which on the shape is what changes."""

SHAPED = re.compile(r"TensorSpec\(shape=\((\w+(?:, \w+)*),?\)(?:, dtype=(tf\.\w+))?")
"""A tensor's shape; the groups are its dimensions and its type."""

NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?|True|False")

TENSOR = "{}(..., tf.constant({}))  # one graph for all values"

TEXT = """\
@tf.function
def {}(x, y, {}): ...  # each text is a graph of its own: it is for the few cases that differ in operations"""

SHAPE = """\
dataset = dataset.batch({}, drop_remainder=True)

@tf.function(reduce_retracing=True)  # or input_signature=[{}]
def {}(x): ..."""

OPEN = """\
@tf.function(reduce_retracing=True)  # or input_signature=[{}]
def {}(x): ...

dataset = dataset.bucket_by_sequence_length(
    length, {}, pad_to_bucket_boundary=True)"""

ONCE = """\
@tf.function  # create it once, outside of the loop; pass the same objects and Python values in each call
def train_step(x, y): ..."""


ONE_COMPILE = "Compile the model once, before the loop that calls fit"

COMPILE = """\
model.compile(optimizer, loss)  # each call discards the training function
for epoch in range(epochs):
    model.optimizer.learning_rate = schedule(epoch)  # assigns a variable: nothing is traced anew
    model.fit(dataset)"""
