"""A trap: the loss is read and kept at each step, which on a CPU waits for nothing."""

import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(40)
x = tf.random.normal((64 * 100, 24, 16))
y = tf.reduce_max(x, axis=(1, 2))
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(6400).batch(64).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.GRU(48), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()


@tf.function
def train_step(x, y):
    """Take one step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x)[:, 0] - y) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return loss


losses = []
for epoch in range(2):
    for features, targets in dataset:
        tick()
        loss = train_step(features, targets)
        losses.append(float(loss))
    print(f"epoch {epoch}: {losses[-1]:.4f}")
