"""What to change about a function that is retraced, by what changes from trace to trace."""

import re

from tfdoctor.facts.phases.run_traces import TracedDefinition
from tfdoctor.facts.step_time.retracing import Retraced
from tfdoctor.terms.verdict import Location, Remedy


def for_change(function: Retraced, at: Location | None) -> Remedy:
    """Choose by what changes: a Python number, a shape, or something else."""
    if function.changed and all(NUMBER.fullmatch(value) for value in function.changed):
        action = f"Pass {function.name} a tensor instead of a Python number"
        return Remedy(action, TENSOR.format(function.name, "step"), at, "tensor-argument")
    matches = [SHAPED.match(value) for value in function.changed]
    shapes = {match[0] for match in matches if match}
    if None in matches or len(shapes) < SEVERAL:
        action = f"Find what changes in each call of {function.name} and keep it constant"
        return Remedy(action, ONCE, at)
    if len({match[1] for match in matches if match}) < SEVERAL:
        action = f"Give {function.name} batches of one shape, or leave the shape open"
        return Remedy(action, SHAPE.format(function.name), at, "reduce-retracing")
    action = f"Leave the input shape of {function.name} open, or pad the input to a few lengths"
    return Remedy(action, OPEN.format(function.name), at, "reduce-retracing")


def of_numbers(function: TracedDefinition) -> Remedy:
    """Pass tensors instead of the Python numbers that change, at the line that assigns or else passes them."""
    numbers = [one for one in function.numbers if not one.is_text]
    if not numbers:
        first = function.numbers[0]
        action = (
            f"Call {function.name} with few different texts, or make a function for each of them"
        )
        return Remedy(action, TEXT.format(function.name, first.name), first.at or function.at)
    first, several = numbers[0], len(numbers) > 1
    tensors = "), tf.constant(".join(one.name for one in numbers)
    code = TENSOR.format(function.name, tensors)
    what = "tensors instead of Python numbers" if several else "a tensor instead of a Python number"
    return Remedy(f"Pass {function.name} {what}", code, first.at or function.at, "tensor-argument")


SEVERAL = 2
"""Different shapes from which on the shape is what changes."""

SHAPED = re.compile(r"TensorSpec\(shape=\(\w+(.*?)\)")
"""A tensor's shape; the group is the shape without its first dimension, the batch size."""

NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?|True|False")

TENSOR = "loss = {}(x, y, tf.constant({}))  # one graph for all values"

TEXT = """\
@tf.function
def {}(x, y, {}): ...  # each text is a graph of its own: it is for the few cases that differ in operations"""

SHAPE = """\
dataset = dataset.batch(128, drop_remainder=True)

@tf.function(reduce_retracing=True)  # or input_signature=[tf.TensorSpec([None, 32], tf.float32)]
def {}(x): ..."""

OPEN = """\
@tf.function(reduce_retracing=True)  # or input_signature=[tf.TensorSpec([None, None], tf.int64)]
def {}(x): ...

dataset = dataset.bucket_by_sequence_length(length, [64, 128, 256], [64, 32, 16, 8])"""

ONCE = """\
@tf.function  # create it once, outside of the loop; pass the same objects and Python values in each call
def train_step(x, y): ..."""


ONE_COMPILE = "Compile the model once, before the loop that calls fit"

COMPILE = """\
model.compile(optimizer, loss)  # each call discards the training function
for epoch in range(epochs):
    model.optimizer.learning_rate = schedule(epoch)  # assigns a variable: nothing is traced anew
    model.fit(dataset)"""
