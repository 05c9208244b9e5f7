"""A trap: weights tiled over all channels, which on a CPU costs what broadcasting them costs."""

import tensorflow as tf

from stopwatch import tick

tf.random.set_seed(55)
MOMENTS, CHANNELS, WIDTH, BATCH = 256, 12, 96, 32
recordings = tf.random.normal((BATCH * 10, MOMENTS, CHANNELS))
rates = tf.reduce_max(recordings[:, :, 0], axis=1)
dataset = tf.data.Dataset.from_tensor_slices((recordings, rates)).cache()
dataset = dataset.batch(BATCH, drop_remainder=True).repeat().prefetch(2)


class Pooled(tf.keras.layers.Layer):
    """The mean over time, weighted by a score for each moment."""

    def __init__(self):
        super().__init__()
        self.score = tf.keras.layers.Dense(1)

    def call(self, x):
        """Return a vector for each recording."""
        weights = tf.nn.softmax(self.score(x), axis=1)
        weights = tf.tile(weights, [1, 1, WIDTH])
        return tf.reduce_sum(weights * x, axis=1)


model = tf.keras.Sequential(
    [
        tf.keras.Input((MOMENTS, CHANNELS), batch_size=BATCH),
        tf.keras.layers.Dense(WIDTH, activation="relu"),
        Pooled(),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    """Take one step."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True)[:, 0] - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for step, (x, y) in enumerate(dataset.take(160)):
    tick()
    loss = train_step(x, y)
    if step % 50 == 0:
        print(step, float(loss))
