"""Point cloud classification with EdgeConv blocks."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

POINTS, K, BATCH = 256, 12, 8
rng = np.random.default_rng(0)
clouds = rng.normal(size=(560, POINTS, 3)).astype("float32")
labels = rng.integers(0, 5, 560)
clouds *= (1 + labels / 2)[:, None, None]


def knn(x):
    sq = tf.reduce_sum(x * x, -1, keepdims=True)
    dist = sq - 2 * tf.matmul(x, x, transpose_b=True) + tf.transpose(sq, (0, 2, 1))
    return tf.argsort(dist, axis=-1)[:, :, :K]


class EdgeConv(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.mlp = keras.Sequential([layers.Dense(width, activation="relu"), layers.Dense(width, activation="relu")])

    def call(self, x):
        neighbours = tf.gather(x, knn(tf.stop_gradient(x)), batch_dims=1)
        centre = tf.repeat(x[:, :, None], K, axis=2)
        return tf.reduce_max(self.mlp(tf.concat([centre, neighbours - centre], -1)), axis=2)


inputs = keras.Input((POINTS, 3))
h1 = EdgeConv(16)(inputs)
h2 = EdgeConv(32)(h1)
x = layers.Concatenate()([h1, h2])
x = layers.Dense(128, activation="relu")(x)
x = layers.GlobalMaxPooling1D()(x)
x = layers.Dropout(0.3)(layers.Dense(64, activation="relu")(x))
outputs = layers.Dense(5)(x)
model = keras.Model(inputs, outputs)
model.compile(
    keras.optimizers.Adam(1e-3),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(clouds, labels, batch_size=BATCH, epochs=1, verbose=2)
