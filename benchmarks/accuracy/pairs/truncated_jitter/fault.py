"""A signal user: a denoising network whose inputs get truncated normal jitter in each step."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

DEVIATION = 0.1
keras.utils.set_random_seed(32)
rng = np.random.default_rng(32)
clean = rng.standard_normal((64 * 10, 4096)).astype("float32")


class Jitter(keras.layers.Layer):
    """Adds noise while training."""

    def call(self, signals, training=None):
        """Return the signals, with noise."""
        if not training:
            return signals
        return signals + tf.random.truncated_normal(tf.shape(signals), stddev=DEVIATION)


model = keras.Sequential(
    [
        keras.Input((4096,)),
        Jitter(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(4096),
    ]
)
model.compile(keras.optimizers.SGD(0.01), "mse")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(clean, clean, batch_size=64, epochs=15, verbose=2, callbacks=[watch])
