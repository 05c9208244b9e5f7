"""Emulator of a shallow-water model on a doubly periodic grid."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

NY, NX, FIELDS, BATCH = 48, 64, 3, 4
rng = np.random.default_rng(0)
keras.utils.set_random_seed(1)


class PeriodicConv2D(layers.Layer):
    """Convolution that wraps around both axes."""

    def __init__(self, filters, size, activation=None, **kw):
        super().__init__(**kw)
        self.pad = size // 2
        self.conv = layers.Conv2D(filters, size, padding="valid", activation=activation)

    def call(self, x):
        p = self.pad
        x = tf.concat([x[:, -p:], x, x[:, :p]], axis=1)
        x = tf.concat([x[:, :, -p:], x, x[:, :, :p]], axis=2)
        return self.conv(x)


def make_fields(n):
    ky, kx = rng.integers(1, 4, (2, n, FIELDS))
    phase = rng.uniform(0, 6.28, (n, FIELDS))
    yy = np.linspace(0, 2 * np.pi, NY, endpoint=False)[None, :, None, None]
    xx = np.linspace(0, 2 * np.pi, NX, endpoint=False)[None, None, :, None]
    return np.sin(ky[:, None, None] * yy + kx[:, None, None] * xx + phase[:, None, None]).astype("float32")


now = make_fields(200)
later = 0.7 * np.roll(now, (1, 2), axis=(1, 2)) + 0.1 * now**2

inp = keras.Input((NY, NX, FIELDS))
x = PeriodicConv2D(16, 5, "relu")(inp)
for _ in range(3):
    x = layers.Add()([x, PeriodicConv2D(16, 3, "relu")(x)])
model = keras.Model(inp, PeriodicConv2D(FIELDS, 3)(x))


def spectral_mse(y, p):
    err = tf.square(y - p)
    return tf.reduce_mean(err)


model.compile(keras.optimizers.AdamW(1e-3), loss=spectral_mse)
model.fit(now, later, batch_size=BATCH, epochs=2, verbose=2)
