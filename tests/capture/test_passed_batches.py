"""Batches that the agent takes from fit's iterator: seen before the window, and trained on as if they were not."""

from typing import Any

import pytest

from tests.capture.running import plain, profiled

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
rng = np.random.default_rng(3)
drawn = []


def reviews():
    for _ in range(64):
        length = int(rng.integers(4, 12))
        drawn.append(length)
        yield rng.integers(1, 50, length), float(length > 7)


signature = (tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.float32))
data = tf.data.Dataset.from_generator(reviews, output_signature=signature)
data = data.shuffle(16).padded_batch(8, padded_shapes=([40], [])).map(lambda x, y: (x, y)).prefetch(2)
model = keras.Sequential([
    keras.Input((None,), dtype="int32"),
    keras.layers.Embedding(50, 8),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(1),
])
model.compile("sgd", "mse")
history = model.fit(data, epochs=2, verbose=0)
weights = [float(np.sum(weight, dtype="float64")).hex() for weight in model.get_weights()]
counts = model.train_function.experimental_get_tracing_count() if hasattr(
    model.train_function, "experimental_get_tracing_count") else 1
open(OUT, "w").write(repr((weights, history.history["loss"], drawn, counts)))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str, str]:
    """The run under tfdoctor, and what the script wrote with and without it."""
    folder = tmp_path_factory.mktemp("passed")
    written = []
    for name in ("with", "without"):
        script = folder / f"{name}.py"
        script.write_text(f"OUT = {str(folder / f'{name}.txt')!r}\n{SCRIPT}")
        written.append(folder / f"{name}.txt")
    run = profiled(folder / "with.py", folder / "out", warmup=6, steps=5)
    assert run.code == 0
    assert plain(folder / "without.py").returncode == 0
    return run, written[0].read_text(), written[1].read_text()


def test_the_padding_of_batches_that_fit_takes_is_seen(runs: tuple[Any, str, str]) -> None:
    sequences = [entry for entry in runs[0].program["sequences"] if not entry["leading"]]
    (entry,) = sequences
    assert entry["batches"] is True
    assert entry["steps"] == [40] * len(entry["lengths"])
    assert all(4 <= length < 12 for batch in entry["lengths"] for length in batch)


def test_training_and_the_users_generator_are_the_same_to_the_last_bit(
    runs: tuple[Any, str, str],
) -> None:
    _, seen, expected = runs
    assert seen == expected


def test_no_fault_of_the_agent_is_noted(runs: tuple[Any, str, str]) -> None:
    assert "batches of fit" not in runs[0].missing()
    assert "sequence lengths" not in runs[0].missing()
