"""Batches that the agent takes from fit's iterator: seen before the window, and trained on as if they were not."""

import pytest

from tests.capture.running import SOURCES, Run, environment, plain

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


BOTH = """
import runpy, tfdoctor
runpy.run_path("without.py")
with tfdoctor.record("out", warmup=6, steps=5, sample_every_ms=0):
    runpy.run_path("with.py")
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str, str]:
    """The recording of the script, and what it wrote with and without it: one process runs both."""
    folder = tmp_path_factory.mktemp("passed")
    written = [folder / "with.txt", folder / "without.txt"]
    for path in written:
        path.with_suffix(".py").write_text(f"OUT = {str(path)!r}\n{SCRIPT}")
    (folder / "both.py").write_text(BOTH)
    done = plain(folder / "both.py", env=environment(PYTHONPATH=str(SOURCES)))
    assert done.returncode == 0, done.stderr
    run = Run(done.returncode, done.stdout, done.stderr, folder / "out")
    return run, written[0].read_text(), written[1].read_text()


def test_the_padding_of_batches_that_fit_takes_is_seen(runs: tuple[Run, str, str]) -> None:
    sequences = [entry for entry in runs[0].program["sequences"] if not entry["leading"]]
    (entry,) = sequences
    assert entry["batches"] is True
    assert entry["steps"] == [40] * len(entry["lengths"])
    assert all(4 <= length < 12 for batch in entry["lengths"] for length in batch)
    assert not runs[0].manifest.agent_errors


def test_training_and_the_users_generator_are_the_same_to_the_last_bit(runs: tuple[Run, str, str]) -> None:
    _, seen, expected = runs
    assert seen == expected
