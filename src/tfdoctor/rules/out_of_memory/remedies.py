"""What fits into memory instead, by the phase that died and the tensor that did not fit."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.phases.run_ending import RunEnding
from tfdoctor.terms.humanize import number
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Remedy

ONE_HOT = frozenset(["to_categorical", "one_hot", "get_dummies", "OneHotEncoder"])
"""Functions that make a row of zeros and a one for each class number."""

CLASSES = 100
"""Classes from which on one-hot rows in float32 take most of the memory of usual examples."""

MODELS = 3
"""Models from which on what the earlier ones left may be the reason."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides which change fits: the batch size, what the line calls, the models made, whether memory grew."""

    batch: int | None = None
    calls: frozenset[str] = frozenset()
    models: int = 0
    grew: bool = False


def remedies(ending: RunEnding, fit: Circumstances) -> tuple[Remedy, ...]:
    """Return the changes, the likeliest first: of memory kept before, of the data, of the phase that died."""
    found = []
    if fit.models >= MODELS:
        found.append(Remedy("Forget each model before the next one is built", SESSION))
    elif fit.grew:
        found.append(Remedy("Find what grows from step to step: see growing-memory", KEEP))
    names = {calls.rpartition(".")[2] for calls in fit.calls}
    if names & ONE_HOT and (not ending.shape or ending.shape[-1] >= CLASSES):
        found.append(Remedy("Keep class numbers and use a sparse loss", SPARSE, ending.at))
    return (*found, *_of_phase(ending, fit))


def _of_phase(ending: RunEnding, fit: Circumstances) -> Iterator[Remedy]:
    at = ending.at
    match ending.phase:
        case Phase.PREDICTION | Phase.EVALUATION:
            yield Remedy("Compute results in smaller batches, and keep only what is needed", PARTS, at)
        case Phase.BUILDING:
            yield Remedy("Make the layer smaller that holds most weights", SMALLER, at)
        case Phase.STEPS | Phase.TRACING | Phase.BOUNDARIES:
            yield _smaller_batch(ending, fit)
            yield Remedy(KEEP_UPDATE, ACCUMULATE)
            if ending.allocator:
                yield Remedy("Compute in 16 bit, which halves the activations", POLICY)
        case _:
            yield Remedy("Read and convert the data in batches instead of one array", BATCHES, at)
            if ending.dtype in ("float64", "double"):
                yield Remedy("Keep the data as float32, half of the memory of float64", FLOAT32, at)


def _smaller_batch(ending: RunEnding, fit: Circumstances) -> Remedy:
    """Advise half of the batch; where it is unknown, 32, Keras' own."""
    first = ending.shape[0] if ending.shape else None
    of = f" from {number(fit.batch)}" if fit.batch and fit.batch == first else ""
    may_be_batch = first and first <= LARGEST_BATCH and len(ending.shape) > 1
    known = fit.batch or (first if may_be_batch else None)
    smaller = max(1, known // 2) if known else 32
    action = f"Reduce the batch size{of}, to {number(smaller)} at first"
    return Remedy(action, BATCH.format(smaller), ending.at)


LARGEST_BATCH = 65_536
"""First dimension of a tensor up to which it may be a batch; larger ones are examples or features."""


SESSION = """\
for units in (32, 64, 128):
    keras.backend.clear_session()  # forgets the models, layers and functions made so far
    model = build(units)"""

KEEP = "losses.append(float(loss))  # a number; a kept tensor keeps its memory alive"

KEEP_UPDATE = "Keep the size of the update: add up the gradients of several small batches"

SPARSE = """\
model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy())
model.fit(x, labels)  # class numbers, int32: no row of zeros and a one for each"""

PARTS = """\
model.predict(x, batch_size=16)
for batch in dataset:  # or one batch at a time, whose results go to a file
    file.write(model(batch, training=False).numpy().tobytes())"""

SMALLER = """\
keras.layers.GlobalAveragePooling2D(),  # before Dense, instead of Flatten: 512 inputs instead of 512 x 76 x 79
keras.layers.Dense(512),"""

BATCHES = """\
dataset = tf.data.Dataset.from_tensor_slices(paths)  # names of files, not their contents
dataset = dataset.map(read, num_parallel_calls=tf.data.AUTOTUNE).batch(batch_size).prefetch(tf.data.AUTOTUNE)
array = np.load("data.npy", mmap_mode="r")  # or an array that stays in its file: rows are read when needed"""

FLOAT32 = "x = np.asarray(rows, dtype=np.float32)"

BATCH = "model.fit(x, y, batch_size={})"

ACCUMULATE = """\
optimizer = keras.optimizers.Adam(gradient_accumulation_steps=4)  # Keras 3: updates after four batches"""

POLICY = """\
keras.mixed_precision.set_global_policy("mixed_float16")  # "mixed_bfloat16" from compute capability 8.0 on"""
