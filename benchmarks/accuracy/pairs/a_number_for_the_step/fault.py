"""A loop that hands a Python number to its `tf.function`, which is traced anew for each."""

import tensorflow as tf

from stopwatch import tick

STEPS = 60
tf.keras.utils.set_random_seed(21)
x = tf.random.normal((1024, 256))
y = tf.reduce_sum(x, axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(512, "relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(1e-3)


@tf.function
def train_step(x, y, step):
    """Take a step with a weight that grows."""
    with tf.GradientTape() as tape:
        weight = tf.minimum(1.0, tf.cast(step, tf.float32) / 50.0)
        loss = weight * tf.reduce_mean((model(x) - y) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return loss


model(x)
for step in range(STEPS):
    tick()
    loss = train_step(x, y, step)
    if step % 20 == 0:
        print(f"step {step}: {loss:.4f}")
