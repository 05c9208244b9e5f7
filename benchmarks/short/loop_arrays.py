"""A custom loop that cuts batches out of NumPy arrays, around a tf.function."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.normal(size=(4096, 64)).astype("float32")
y = x @ rng.normal(size=(64, 1)).astype("float32")
w1 = tf.Variable(tf.random.stateless_normal((64, 128), (0, 1)) / 8)
w2 = tf.Variable(tf.random.stateless_normal((128, 1), (0, 2)) / 11)


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.relu(x @ w1) @ w2 - y) ** 2)
    for weight, gradient in zip((w1, w2), tape.gradient(loss, (w1, w2))):
        weight.assign_sub(0.01 * gradient)
    return loss


for step in range(500):
    rows = rng.integers(0, len(x), 64)
    loss = train(x[rows], y[rows])
    if step % 50 == 0:
        print(step, float(loss))
