"""What to do about Python that makes batches: TensorFlow's own code where it is known, or fewer calls of it."""

from collections.abc import Iterable, Sequence

from tfdoctor.facts.input.input_pipeline import GENERATOR
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.rules.python_input.input_lines import InputLine, InputLines
from tfdoctor.rules.python_input.tensorflow_calls import equivalents
from tfdoctor.terms import text
from tfdoctor.terms.kinds import InputKind
from tfdoctor.terms.verdict import Location, Remedy


def remedies_of(
    stages: Sequence[StageTime],
    at: Location | None,
    python_kind: str,
    sampled: InputLines,
    heavy: Sequence[InputLine],
    *,
    crowded: bool,
) -> tuple[Remedy, ...]:
    """Return the change of all these stages, and what saves a part of the time where their Python has to stay.

    ``heavy`` are the lines of the function that takes most, () where none is to be named. On ``crowded`` cores more
    processes do not help.
    """
    takes = sampled.takes(at) if heavy else ""
    rarely = []
    if heavy:
        rarely.append(Remedy(f"{STAYS}, {fewer(heavy[0].calls)}", at=heavy[0].at))
    if python_kind == InputKind.PY_DATASET and crowded:
        return once(takes, at), *rarely
    if python_kind == InputKind.PY_DATASET:
        return Remedy(f"{MORE_PROCESSES}{takes}", PROCESSES, at), *rarely
    native = in_place((line.calls, line.seen) for line in sampled.lines)
    action, code = _in_tensorflow(stages, python_kind, native)
    if not native:
        rarely.append(Remedy(f"{STAYS}, make the batches in several processes", WORKERS))
    return Remedy(f"{action}{takes}", code, at), *rarely


def fewer(calls: str) -> str:
    """Return how a line takes less time that has to stay, by the function that it calls; "" is its own code."""
    return f"call {calls} less often for each batch" if calls else WITHOUT_LOOPS


def once(takes: str, at: Location | None) -> Remedy:
    """Return the advice to prepare examples before training; ``takes`` is the clause of what takes most."""
    return Remedy(f"{ONCE}{takes}", PREPARED, at)


def _in_tensorflow(stages: Sequence[StageTime], python_kind: str, native: Sequence[str]) -> tuple[str, str]:
    """Return the change of all stages, and its code: TensorFlow's where it is known, else its general shape."""
    generated = [s for s in stages if s.kind == GENERATOR or python_kind == InputKind.GENERATOR]
    mapped = [(stage.title, _function(stage)) for stage in stages if stage not in generated]
    name = next((function for _, function in mapped if function), "prepare")
    titles = [f"{function}()" if function else title for title, function in mapped]
    actions = ["read with tf.data instead of a generator"] if generated else []
    actions += [f"write {' and '.join(titles)} in TensorFlow operations"] if titles else []
    source = (SOURCE,) if generated else ()
    code = (*source, *(native or (FUNCTION.format(name=name),)), MAP.format(name=name))
    return text.capitalized(" and ".join(actions)), "\n".join(code)


def _function(stage: StageTime) -> str:
    """Return the name of the user's function that a stage runs; "" for a lambda or none."""
    dataset = stage.dataset
    named = dataset and dataset.function_at and dataset.function.isidentifier()
    return dataset.function if dataset and named else ""


def in_place(calls: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    """Return TensorFlow's code in place of the functions that take most, by their times or samples."""
    return tuple(
        f"# in place of {' '.join(filter(None, (same.python, same.condition)))}:\nresult = {same.tensorflow}"
        for same in equivalents(calls)
    )


ONCE = "Compute once, before training, what is the same in each epoch"


PREPARED = """\
examples = [prepare(path) for path in paths]  # in the dataset's __init__, or saved to a file
batch = np.stack([augment(examples[index]) for index in indices])  # in __getitem__: what is random"""


STAYS = "Where Python has to stay"


WITHOUT_LOOPS = "replace loops over examples with NumPy operations on whole batches"


MORE_PROCESSES = "Load with several processes, or with more processes"


PROCESSES = "super().__init__(workers=4, use_multiprocessing=True)  # in your PyDataset's __init__"


SOURCE = "dataset = tf.data.Dataset.from_tensor_slices(examples)  # or what else the generator reads: paths, rows"


FUNCTION = """\
def {name}(*example):
    ...  # TensorFlow operations, without tf.py_function and tf.numpy_function
"""


MAP = "dataset = dataset.map({name}, num_parallel_calls=tf.data.AUTOTUNE)"


WORKERS = """\
class Batches(keras.utils.PyDataset):
    def __init__(self):
        super().__init__(workers=4, use_multiprocessing=True)

    def __len__(self):
        return BATCHES  # of an epoch

    def __getitem__(self, index):
        return make_batch(index)"""
