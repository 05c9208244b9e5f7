"""A robotics user: each moment is a folder with a small file for each sensor."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(51)
MOMENTS, SENSORS, VALUES, BATCH, SHARDS = 2560, 4, 240, 128, 4
folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(51)


def store(shard):
    """Write a part of the moments, and return the path."""
    path = str(Path(folder.name, f"{shard}.tfrecord"))
    with tf.io.TFRecordWriter(path) as writer:
        for moment in range(shard, MOMENTS, SHARDS):
            seen = rng.standard_normal(SENSORS * VALUES, dtype="float32")
            writer.write(seen.tobytes() + np.float32(moment % 10).tobytes())
    return path


paths = [store(shard) for shard in range(SHARDS)]


def load(record):
    """Read one moment."""
    values = tf.io.decode_raw(record, tf.float32)
    return tf.ensure_shape(values[:-1], (SENSORS * VALUES,)), tf.cast(values[-1], tf.int32)


dataset = tf.data.TFRecordDataset(paths).shuffle(MOMENTS)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((SENSORS * VALUES,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=6, verbose=2, callbacks=[watch])
