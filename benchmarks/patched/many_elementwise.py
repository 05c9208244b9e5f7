"""A finance user: a chain of elementwise operations of the user's own in each step."""

import tensorflow as tf

from stopwatch import tick

STEPS = 150

tf.random.set_seed(31)
x = tf.random.normal((4096, 512))
scales = [tf.Variable(tf.ones(512)) for _ in range(12)]


@tf.function
def train_step():
    """Fit a chain of smooth clippings to zero."""
    with tf.GradientTape() as tape:
        y = x
        for scale in scales:
            y = tf.tanh(y * scale) + 0.1 * tf.sin(y)
        loss = tf.reduce_mean(y * y)
    for scale, gradient in zip(scales, tape.gradient(loss, scales), strict=True):
        scale.assign_sub(0.1 * gradient)
    return loss


for _ in range(STEPS):
    tick()
    loss = float(train_step())
tick(0)
print(f"loss {loss:.4f}")
