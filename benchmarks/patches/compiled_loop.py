"""A physics user: a chain of elementwise operations in a loop of their own."""

import tensorflow as tf

from stopwatch import tick

tf.random.set_seed(44)
weights = tf.Variable(tf.random.normal((512, 512)) * 0.03)
batches = tf.data.Dataset.from_tensors(tf.random.normal((512, 512))).repeat(200)


@tf.function
def train_step(x):
    """Move the weights a little."""
    with tf.GradientTape() as tape:
        y = x @ weights
        for _ in range(8):
            y = tf.tanh(y) * 0.5 + tf.sigmoid(y) * y + 0.1
        loss = tf.reduce_mean(y * y)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for batch in batches:
    tick()
    loss = train_step(batch)
print(float(loss))
