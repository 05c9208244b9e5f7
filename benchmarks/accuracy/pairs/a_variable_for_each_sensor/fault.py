"""A calibration user: learns a gain and an offset for each of many sensors, before a small network."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(56)
rng = np.random.default_rng(56)
SENSORS, BATCH = 120, 256
readings = rng.standard_normal((BATCH * 20, SENSORS)).astype("float32")
truth = (readings * np.linspace(0.5, 2.0, SENSORS)).mean(axis=1)


class Calibration(keras.layers.Layer):
    """A straight line for each sensor."""

    def build(self, shape):
        """Make the lines."""
        self.gains = [
            self.add_weight(shape=(), initializer="ones", name=f"gain_{i}") for i in range(SENSORS)
        ]
        self.offsets = [
            self.add_weight(shape=(), initializer="zeros", name=f"offset_{i}")
            for i in range(SENSORS)
        ]

    def call(self, x):
        """Return calibrated readings."""
        return x * tf.stack([gain.value for gain in self.gains]) + tf.stack(
            [offset.value for offset in self.offsets]
        )


model = keras.Sequential(
    [
        keras.Input((SENSORS,)),
        Calibration(),
        keras.layers.Dense(256, activation="tanh"),
        keras.layers.Dense(256, activation="tanh"),
        keras.layers.Dense(1),
    ]
)
model.compile(keras.optimizers.Adam(1e-3), "mse")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(readings, truth, batch_size=BATCH, epochs=8, verbose=2, callbacks=[watch])
