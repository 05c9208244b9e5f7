"""A recommender user with a loop of their own: vectors of many songs, of which each batch has a few."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

SONGS, WIDTH, BATCH, HEARD = 60_000, 24, 48, 10
keras.utils.set_random_seed(31)
rng = np.random.default_rng(31)
histories = rng.integers(0, SONGS, (BATCH * 20, HEARD)).astype("int32")
liked = rng.integers(0, 2, BATCH * 20).astype("float32")

songs = keras.layers.Embedding(SONGS, WIDTH)
model = keras.Sequential(
    [
        keras.Input((HEARD,), batch_size=BATCH, dtype="int32"),
        songs,
        keras.layers.Flatten(),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(1),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
of_songs = keras.optimizers.SGD(0.5)
loss_of = keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    """Fit one batch."""
    with tf.GradientTape() as tape:
        loss = loss_of(y[:, None], model(x, training=True))
    table, *weights = model.trainable_variables
    songs_gradient, *gradients = tape.gradient(loss, [table, *weights])
    of_songs.apply_gradients([(songs_gradient, table)])
    optimizer.apply_gradients(zip(gradients, weights, strict=True))
    return loss


starts = range(0, len(liked), BATCH)
batches = [
    (tf.constant(histories[n : n + BATCH]), tf.constant(liked[n : n + BATCH])) for n in starts
]
for epoch in range(8):
    for x, y in batches:
        tick()
        loss = train_step(x, y)
    print(f"epoch {epoch}: {float(loss):.3f}")
