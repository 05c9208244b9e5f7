"""An eager loop: a GradientTape and an update by hand, operation by operation."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = tf.constant(rng.normal(size=(128, 16)), tf.float32)
y = tf.reduce_sum(x, axis=1, keepdims=True)
w1 = tf.Variable(tf.random.stateless_normal((16, 32), (0, 1)) / 4)
w2 = tf.Variable(tf.random.stateless_normal((32, 1), (0, 2)) / 6)

for step in range(400):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.tanh(x @ w1) @ w2 - y))
    gradients = tape.gradient(loss, [w1, w2])
    for weight, gradient in zip((w1, w2), gradients):
        weight.assign_sub(0.01 * gradient)
