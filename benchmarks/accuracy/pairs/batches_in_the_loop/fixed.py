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


FIRST, SECOND = np.triu_indices(20)


def polynomials(rows, target):
    """Return rows with all products of two of their features."""
    products = tf.gather(rows, FIRST, axis=1) * tf.gather(rows, SECOND, axis=1)
    return tf.concat([rows, products], axis=1), target


dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(ITEMS).repeat().batch(BATCH)
dataset = dataset.map(polynomials, num_parallel_calls=2).prefetch(2)
for step, (features, target) in enumerate(dataset.take(STEPS)):
    tick()
    loss = train_step(features, target)
    if step % 50 == 0:
        print(f"step {step}: {loss:.3f}")
