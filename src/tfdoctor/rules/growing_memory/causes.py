"""What to change about memory that grows, by what grows along with it."""

from collections.abc import Iterator

from tfdoctor.facts.growth.kept_results import KeptResult
from tfdoctor.facts.phases.run_calls import RunCalls
from tfdoctor.facts.phases.run_growth import Grows, Trend
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Location, Remedy

MODELS = frozenset(["Functional", "Model", "Sequential"])
"""Types of live objects that are models of Keras."""

TENSORS = frozenset(["EagerTensor", "Tensor"])
"""Types of live objects that are tensors."""


def remedies(
    counts: tuple[Trend, ...], calls: RunCalls | None, makes: Location | None, keeps: KeptResult | None = None
) -> tuple[Remedy, ...]:
    """Return what to change, the likeliest first; a line is named only where it is known to be the cause."""
    found = [*_of_counts(counts, makes, keeps)]
    looped = [call for call in calls.of(RunCall.PREDICT) if call.looped] if calls else []
    if looped:
        predicts = max(looped, key=lambda call: call.count)
        action = f"Call the model itself in the loop, not {predicts.name}"
        found.append(Remedy(action, CALL, predicts.at))
    only_blocks = counts[:1] == tuple(c for c in counts if c.what is Grows.BLOCKS)
    if not found or (only_blocks and not keeps):
        found.append(Remedy("Find the line that holds the memory", FIND))
    return tuple(found)


def _of_counts(counts: tuple[Trend, ...], makes: Location | None, keeps: KeptResult | None) -> Iterator[Remedy]:
    kinds = {trend.what for trend in counts}
    types = {trend.name.rpartition(".")[2] for trend in counts if trend.what is Grows.OBJECTS}
    if Grows.GRAPH in kinds:
        yield Remedy("Make all operations once, before the loop", GRAPH, makes)
    if Grows.FUNCTIONS in kinds:
        yield Remedy("Trace each tf.function once", ONCE)
    if types & MODELS:
        yield Remedy("Forget each model before the next one is built", SESSION)
    # Traced graphs are Python's memory, too.
    blocks = Grows.BLOCKS in kinds and Grows.FUNCTIONS not in kinds
    if keeps or types & TENSORS or blocks:
        action = "Keep numbers or arrays of fixed size, not the tensors of each step"
        yield Remedy(action, NUMBERS, keeps.at if keeps else None)
    if Grows.FILES in kinds:
        yield Remedy("Close the files that are opened in the loop", CLOSE)


GRAPH = """\
update = weights.assign(value)  # each call in the loop would add operations to the graph
tf.compat.v1.get_default_graph().finalize()  # a new operation now raises an error that shows its line
for batch in batches:
    session.run(update, {value: batch})"""

SESSION = """\
for units in (32, 64, 128):
    keras.backend.clear_session()  # forgets the models, layers and functions made so far
    model = build(units)"""

NUMBERS = """\
losses.append(float(loss))  # a number; a kept tensor keeps its memory alive
outputs[start:end] = model(batch, training=False).numpy()  # into an array of fixed size"""

ONCE = """\
@tf.function  # each graph that it traces stays in memory: make it once, outside of the loop,
def train_step(x, y): ...  # and call it with tensors of the same shapes, and no changing numbers of Python"""

CLOSE = """\
with open(path, "rb") as file:  # closes it, also after an error
    data = file.read()"""

CALL = """\
for batch in dataset:
    outputs.append(model(batch, training=False).numpy())  # or model.predict_on_batch(batch)"""

FIND = """\
import tracemalloc
tracemalloc.start()
before = tracemalloc.take_snapshot()
# ... some hundred steps ...
for line in tracemalloc.take_snapshot().compare_to(before, "lineno")[:5]:
    print(line)  # what Python and NumPy hold; if little grew here, TensorFlow holds it: a dataset, a graph"""
