import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

NUM_POINTS = 256
K = 8


class EdgeConv(layers.Layer):
    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.mlp = layers.Dense(width, activation="relu")

    def knn(self, x):
        sq = tf.reduce_sum(x * x, axis=-1)
        dist = sq[:, :, None] - 2 * tf.matmul(x, x, transpose_b=True) + sq[:, None, :]
        return tf.math.top_k(-dist, k=K).indices

    def call(self, x):
        idx = self.knn(x)
        neighbours = tf.gather(x, idx, batch_dims=1)
        center = tf.repeat(x[:, :, None, :], K, axis=2)
        edge = tf.concat([center, neighbours - center], axis=-1)
        return tf.reduce_max(self.mlp(edge), axis=2)


inputs = keras.Input((NUM_POINTS, 3))
x1 = EdgeConv(16)(inputs)
x2 = EdgeConv(16)(x1)
x = layers.Concatenate()([x1, x2])
x = layers.Conv1D(64, 1, activation="relu")(x)
x = layers.GlobalMaxPooling1D()(x)
x = layers.Dropout(0.3)(x)
outputs = layers.Dense(10, activation="softmax")(x)
model = keras.Model(inputs, outputs)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])

rng = np.random.default_rng(0)
clouds = rng.normal(size=(320, NUM_POINTS, 3)).astype("float32")
clouds /= np.linalg.norm(clouds, axis=-1, keepdims=True)
labels = rng.integers(0, 10, 320)
train = tf.data.Dataset.from_tensor_slices((clouds, labels)).cache().shuffle(320).batch(8).prefetch(2)
model.fit(train, epochs=2, verbose=2)
