"""Training whose batches are made in Python, by a Keras dataset in several threads, or by a generator."""

import sys
import time
import zlib

import keras
import numpy as np
import tensorflow as tf

STEPS, SHAPE = 24, (8, 64)
PACKED = zlib.compress(bytes(8_000_000))


class Steps(keras.callbacks.Callback):
    """Notes how long a step takes."""

    began, took_s = 0.0, 0.0

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        """Note the beginning."""
        Steps.began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Note the end; the first steps are traced."""
        if batch > 1:
            Steps.took_s = time.perf_counter() - self.began


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return zeros, after twenty times as long as a step takes."""
    until = time.perf_counter() + min(max(0.02, 20 * Steps.took_s), 0.5)
    while time.perf_counter() < until:
        zlib.decompress(PACKED)  # takes the time
    return np.zeros(SHAPE, "float32"), np.zeros((8, 1), "float32")


class Batches(keras.utils.PyDataset):
    """A batch at each index."""

    def __len__(self) -> int:
        """Return the number of batches."""
        return STEPS

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch."""
        return batch()


def generate() -> object:
    """Yield batches."""
    for _ in range(STEPS):
        yield batch()


signature = tf.TensorSpec(SHAPE), tf.TensorSpec((8, 1))
data = {
    "workers": lambda: Batches(workers=2, max_queue_size=1),  # so that no traced steps take batches made before
    "generator": lambda: tf.data.Dataset.from_generator(generate, output_signature=signature),
}[sys.argv[1]]()
model = keras.Sequential([keras.Input(SHAPE[1:]), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=1, verbose=0, callbacks=[Steps()])
print("done")
