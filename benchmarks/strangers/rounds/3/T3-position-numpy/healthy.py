"""Transformer encoder for topic classification."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

MAXLEN, VOCAB, DIM = 80, 5000, 64


def positional_encoding(length, depth):
    positions = np.arange(length)[:, None]
    depths = np.arange(depth // 2)[None, :] / (depth // 2)
    angles = positions / 10000**depths
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype("float32")


class PositionalEmbedding(layers.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = layers.Embedding(VOCAB, DIM)

    def call(self, x):
        return self.embedding(x) * DIM**0.5 + positional_encoding(x.shape[1], DIM)


inputs = keras.Input((MAXLEN,), dtype="int32")
x = PositionalEmbedding()(inputs)
attended = layers.MultiHeadAttention(4, DIM // 4)(x, x)
x = layers.LayerNormalization()(x + attended)
x = layers.LayerNormalization()(x + layers.Dense(DIM)(layers.Dense(128, activation="relu")(x)))
x = layers.GlobalAveragePooling1D()(x)
model = keras.Model(inputs, layers.Dense(8, activation="softmax")(x))
model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy")

rng = np.random.default_rng(0)
texts = rng.integers(0, VOCAB, (2560, MAXLEN)).astype("int32")
topics = rng.integers(0, 8, 2560)
model.fit(texts, topics, batch_size=16, epochs=1, verbose=2)
