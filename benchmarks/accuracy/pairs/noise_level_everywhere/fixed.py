"""A diffusion user: how noisy an image is becomes a gate for each channel of a small denoiser."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(59)
rng = np.random.default_rng(59)
SIDE, WIDTH, BATCH = 32, 48, 8
images = rng.standard_normal((BATCH * 40, SIDE, SIDE, 3)).astype("float32")
levels = rng.random((len(images), 1)).astype("float32")


class Gated(keras.layers.Layer):
    """Weighs the channels of a map by what a vector says."""

    def __init__(self, width):
        super().__init__()
        self.gate = keras.layers.Dense(width)

    def call(self, x, vector):
        """Return a map of the same shape."""
        gate = tf.math.softplus(self.gate(vector))
        return x * gate[:, None, None, :]


def denoiser():
    """Return a network that takes a noisy image and the level of its noise."""
    noisy = keras.Input((SIDE, SIDE, 3), batch_size=BATCH)
    level = keras.Input((1,), batch_size=BATCH)
    vector = keras.layers.Dense(32, activation="swish")(level)
    x = keras.layers.Conv2D(WIDTH, 1)(noisy)
    for _ in range(3):
        x = keras.layers.Conv2D(WIDTH, 1, activation="relu")(Gated(WIDTH)(x, vector))
    return keras.Model([noisy, level], keras.layers.Conv2D(3, 3, padding="same")(x))


model = denoiser()
optimizer = keras.optimizers.Adam(1e-3)


@tf.function
def train_step(x, level):
    """Guess the noise."""
    noise = tf.random.normal(tf.shape(x))
    with tf.GradientTape() as tape:
        guess = model([x + noise * level[:, None, None], level], training=True)
        loss = tf.reduce_mean((guess - noise) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


dataset = tf.data.Dataset.from_tensor_slices((images, levels)).shuffle(len(images))
dataset = dataset.batch(BATCH, drop_remainder=True).prefetch(2)
for epoch in range(4):
    for x, level in dataset:
        tick()
        loss = train_step(x, level)
    print(f"epoch {epoch}: {loss:.3f}")
