"""Promoter prediction from DNA windows with a kernelised (softmax-free) attention encoder."""
import numpy as np
import keras
import tensorflow as tf
from keras import layers

LEN, DIM, HEADS, BATCH = 512, 32, 2, 5
rng = np.random.default_rng(0)
dna = rng.integers(0, 4, (325, LEN)).astype("int8")
label = rng.integers(0, 2, 325).astype("float32")
motif = np.array([3, 0, 3, 0, 0, 0])
for row, at in zip(np.flatnonzero(label), rng.integers(0, LEN - 6, int(label.sum()))):
    dna[row, at : at + 6] = motif


def phi(x):
    return tf.nn.elu(x) + 1.0


class KernelAttention(layers.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.dim, self.heads = dim, heads
        self.qkv = layers.Dense(3 * dim, use_bias=False)
        self.out = layers.Dense(dim)

    def split(self, x):
        return tf.transpose(tf.reshape(x, [-1, LEN, self.heads, self.dim // self.heads]), [0, 2, 1, 3])

    def call(self, x):
        q, k, v = [self.split(t) for t in tf.split(self.qkv(x), 3, axis=-1)]
        q, k = phi(q), phi(k)
        scores = tf.matmul(q, k, transpose_b=True)
        norm = tf.reduce_sum(scores, axis=-1, keepdims=True)
        y = tf.matmul(scores, v) / norm
        y = tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [-1, LEN, self.dim])
        return self.out(y)


inp = keras.Input((LEN,), dtype="int8")
x = layers.Embedding(4, DIM)(inp)
x = layers.Conv1D(DIM, 9, padding="same", activation="relu")(x)
for _ in range(2):
    x = layers.Add()([x, KernelAttention(DIM, HEADS)(layers.LayerNormalization()(x))])
    x = layers.Add()([x, layers.Dense(DIM, activation="relu")(layers.LayerNormalization()(x))])
x = layers.GlobalMaxPooling1D()(x)
model = keras.Model(inp, layers.Dense(1, activation="sigmoid")(x))
model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
ds = tf.data.Dataset.from_tensor_slices((dna, label)).shuffle(325).batch(BATCH).prefetch(2)
model.fit(ds, epochs=1, verbose=2)
