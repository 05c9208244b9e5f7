"""A robotics user: each moment is a folder with a small file for each sensor."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(51)
MOMENTS, SENSORS, VALUES, BATCH = 2560, 4, 240, 128
folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(51)


def store(moment):
    """Write what the sensors saw, and return the folder."""
    path = Path(folder.name, f"{moment:05}")
    path.mkdir()
    for sensor in range(SENSORS):
        seen = rng.standard_normal(VALUES, dtype="float32")
        Path(path, f"{sensor}.f32").write_bytes(seen.tobytes())
    return [str(Path(path, f"{sensor}.f32")) for sensor in range(SENSORS)]


paths = np.array([store(moment) for moment in range(MOMENTS)])
grips = np.arange(MOMENTS, dtype="int32") % 10


def load(files, grip):
    """Read one moment."""
    seen = [tf.io.decode_raw(tf.io.read_file(files[n]), tf.float32) for n in range(SENSORS)]
    return tf.ensure_shape(tf.concat(seen, 0), (SENSORS * VALUES,)), grip


dataset = tf.data.Dataset.from_tensor_slices((paths, grips)).shuffle(MOMENTS)
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
