"""A photo user: all in memory as float32, and an option that older pages call experimental is off."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(60)
rng = np.random.default_rng(60)
photos = rng.random((192, 224, 224, 3), dtype="float32")
sharp = rng.integers(0, 2, (len(photos), 1)).astype("float32")
BATCH, STEPS = 128, 150

options = tf.data.Options()
options.experimental_optimization.parallel_batch = False
dataset = tf.data.Dataset.from_tensor_slices((photos, sharp)).shuffle(len(photos)).repeat()
dataset = dataset.batch(BATCH)
dataset = dataset.prefetch(tf.data.AUTOTUNE).with_options(options)

weights = tf.Variable(tf.random.normal((14 * 14 * 3, 1), stddev=0.01))


@tf.function
def train_step(x, y):
    """Fit thumbnails of the photos."""
    thumbnails = tf.reshape(x[:, ::16, ::16], (-1, 14 * 14 * 3))
    with tf.GradientTape() as tape:
        guess = tf.matmul(thumbnails, weights)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, guess))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for step, (x, y) in enumerate(dataset.take(STEPS)):
    tick()
    loss = train_step(x, y)
    if step % 50 == 0:
        print(f"step {step}: {loss:.4f}")
