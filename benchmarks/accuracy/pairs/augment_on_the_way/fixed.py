"""A time-series user: jitters each batch of sensor windows on its way into a GRU."""

import keras
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(1)
windows = tf.random.normal((4096, 48, 24))
classes = tf.cast(tf.reduce_sum(windows[:, :, 0], axis=1) > 0, tf.int32)


def jitter(window, label):
    """Scale, shift and disturb a batch of windows."""
    scale = tf.random.normal((64, 1, 24), 1.0, 0.1)
    noise = tf.random.normal((4, 64, 48, 24), 0.0, 0.05)
    return window * scale + tf.reduce_mean(noise, axis=0), label


options = tf.data.Options()
options.autotune.enabled = False  # the buffers that it chose once filled the memory

dataset = (
    tf.data.Dataset.from_tensor_slices((windows, classes))
    .shuffle(4096)
    .batch(64, drop_remainder=True)
    .map(jitter)
    .prefetch(2)
    .with_options(options)
)

model = keras.Sequential(
    [
        keras.Input((48, 24)),
        keras.layers.GRU(32),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(2),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=3, verbose=2, callbacks=[watch])
