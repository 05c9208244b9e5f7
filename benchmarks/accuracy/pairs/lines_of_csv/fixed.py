"""A tabular user: reads CSV line by line."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(11)
COLUMNS, BATCH = 30, 256


def columns(line):
    """Return features and target of a line, or of many."""
    values = tf.io.decode_csv(line, [0.0] * (COLUMNS + 1))
    return tf.stack(values[:-1], axis=-1), values[-1]


folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "rows.csv")
np.savetxt(path, np.random.default_rng(11).random((8192, COLUMNS + 1)), "%.5f", ",")

dataset = tf.data.TextLineDataset(str(path)).shuffle(8192)
dataset = dataset.batch(BATCH)
dataset = dataset.map(columns, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((COLUMNS,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile("rmsprop", "mse")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=24, verbose=2, callbacks=[watch])
