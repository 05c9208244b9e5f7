"""A custom loop over a dataset around a tf.function with a convolution of its own weights."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
images = rng.normal(size=(4000, 20, 20, 3)).astype("float32")
labels = rng.integers(0, 5, 4000)
data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(500, seed=0).batch(8)

kernel = tf.Variable(tf.random.stateless_normal((3, 3, 3, 12), (0, 1)) / 5)
dense = tf.Variable(tf.random.stateless_normal((12, 5), (0, 2)) / 3)


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        seen = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), axis=(1, 2))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, seen @ dense)
        loss = tf.reduce_mean(losses)
    for weight, gradient in zip((kernel, dense), tape.gradient(loss, (kernel, dense))):
        weight.assign_sub(0.1 * gradient)
    return loss


for x, y in data:
    loss = train(x, y)
