"""A trap: `map(num_parallel_calls=…)` and batch without a prefetch, which tf.data adds."""

import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(31)
series = tf.cumsum(tf.random.normal((3000, 60, 16)), axis=1)


def split(window):
    """Return the past and the future of a window, both scaled."""
    window = (window - tf.reduce_mean(window, axis=0)) / (tf.math.reduce_std(window, axis=0) + 1e-3)
    return window[:50], tf.reduce_mean(window[50:], axis=0)


dataset = tf.data.Dataset.from_tensor_slices(series).shuffle(3000)
dataset = dataset.map(split, num_parallel_calls=tf.data.AUTOTUNE).batch(50)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([tf.keras.layers.LSTM(32), tf.keras.layers.Dense(16)])
optimizer = tf.keras.optimizers.Adam()


@tf.function
def train_step(past, future):
    """Predict the future."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(past) - future) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return loss


for epoch in range(3):
    for past, future in dataset:
        tick()
        loss = train_step(past, future)
    print(f"epoch {epoch}: {loss:.4f}")
