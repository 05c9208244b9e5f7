"""A loop over NumPy arrays: each batch is put together in Python before the step."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)
x = rng.standard_normal((20000, 20)).astype("float32")
y = x[:, :4].prod(axis=1, keepdims=True)
ITEMS, STEPS, BATCH = len(x), 150, 128

model = tf.keras.Sequential(
    [tf.keras.Input((230,)), tf.keras.layers.Dense(1024, "relu"), tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.SGD(1e-3)


@tf.function
def train_step(features, target):
    """Take one step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features) - target) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def polynomial(row):
    """Return a row with all products of two of its features."""
    pairs = [row[i] * row[j] for i in range(20) for j in range(i, 20)]
    return np.concatenate([row, np.array(pairs, dtype="float32")])


for step in range(STEPS):
    tick()
    rows = rng.integers(0, ITEMS, BATCH)
    loss = train_step(np.stack([polynomial(row) for row in x[rows]]), y[rows])
    if step % 50 == 0:
        print(f"step {step}: {loss:.3f}")
