"""A recommender user: an embedding written as the product of one-hot rows and a table."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

ITEMS, WIDTH = 6000, 32
keras.utils.set_random_seed(25)
rng = np.random.default_rng(25)
baskets = rng.integers(0, ITEMS, (64 * 50, 6))
bought = (baskets.sum(axis=1) % 2).astype("float32")


class Table(keras.layers.Layer):
    """Item vectors."""

    def build(self, input_shape):
        """Make the table."""
        self.table = self.add_weight(shape=(ITEMS, WIDTH), initializer="uniform")

    def call(self, items):
        """Return the vectors of some items."""
        return tf.matmul(tf.one_hot(items, ITEMS), self.table)


model = keras.Sequential(
    [
        keras.Input((6,), dtype="int32"),
        Table(),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(keras.optimizers.SGD(0.1), "binary_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(baskets, bought, batch_size=64, epochs=3, verbose=2, callbacks=[watch])
